import { expect, it } from 'vitest'
import { seededRandom } from '../seeded-random.js'
import { SortedList } from './sorted-list.js'

const byValue = (one: number, other: number): number => one - other

it('agrees with a sorted array over random changes', () => {
  const seed = Number(process.env.FLUXGATE_TEST_SEED ?? 1)
  const random = seededRandom(seed)
  const below = (most: number): number => Math.floor(random() * most)
  const list = new SortedList(byValue, [3, 3, 5])
  const model = [3, 3, 5]
  for (let i = 0; i < 3000; i++) {
    if (below(100) < (i < 1500 ? 60 : 40)) {
      const item = below(200)
      list.insert(item)
      model.push(item)
      model.sort(byValue)
    } else {
      const position = below(model.length + 1)
      expect(list.removeAt(position), `seed ${seed}`).toBe(model.splice(position, 1)[0])
    }
    const item = below(200)
    expect(list.size).toBe(model.length)
    expect(list.positionOf(item), `seed ${seed}`).toBe(model.filter((other) => other < item).length)
  }
  expect(list.toArray(), `seed ${seed}`).toEqual(model)
  expect(model.map((_, position) => list.at(position))).toEqual(model)
})

it('inserts after equal items', () => {
  const list = new SortedList<{ key: number; name: string }>((one, other) => one.key - other.key)
  for (const name of ['a', 'b', 'c']) list.insert({ key: 1, name })
  list.insert({ key: 0, name: 'd' })
  expect(list.toArray().map(({ name }) => name)).toEqual(['d', 'a', 'b', 'c'])
})

it('returns undefined for positions outside the list', () => {
  const list = new SortedList(byValue, [1])
  expect([list.at(-1), list.at(1), list.removeAt(-1), list.removeAt(1)]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect(list.size).toBe(1)
})

it.each([
  ['ascending', (i: number): number => i],
  ['descending', (i: number): number => -i],
  ['scattered', (i: number): number => (i * 7919) % 10_007],
])('takes at most 2.5 log2(n) + 1 comparisons to insert one of 8000 %s items', (_, item) => {
  let comparisons = 0
  let most = 0
  const list = new SortedList<number>((one, other) => {
    comparisons++
    return one - other
  })
  for (let i = 0; i < 8000; i++) {
    comparisons = 0
    list.insert(item(i))
    most = Math.max(most, comparisons)
  }
  // Removals must keep the tree balanced too.
  for (let i = 0; i < 4000; i++) list.removeAt(i % 2 === 0 ? 0 : list.size - 1)
  comparisons = 0
  list.positionOf(item(4000))
  expect(Math.max(most, comparisons)).toBeLessThanOrEqual(2.5 * Math.log2(8000) + 1)
})
