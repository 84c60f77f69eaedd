import { expect, it } from 'vitest'
import { seededRandom } from '../seeded-random.js'
import { IndexedHeap } from './indexed-heap.js'

interface Item {
  key: number
}

const byKey = (one: Item, other: Item): number => one.key - other.key

it('keeps the smallest item first while items are added, changed and removed', () => {
  const seed = Number(process.env.FLUXGATE_TEST_SEED ?? 1)
  const random = seededRandom(seed)
  const below = (most: number): number => Math.floor(random() * most)
  const heap = new IndexedHeap<Item>(byKey)
  const items: Item[] = []
  for (let i = 0; i < 3000; i++) {
    const action = below(3)
    const index = below(items.length)
    if (items.length === 0 || action === 0) {
      const item = { key: below(100) }
      items.push(item)
      heap.set(item)
    } else if (action === 1) {
      const item = items[index] as Item
      item.key = below(100)
      heap.set(item)
    } else heap.delete(items.splice(index, 1)[0] as Item)
    expect(heap.size, `seed ${seed}`).toBe(items.length)
    expect(heap.first?.key, `seed ${seed}`).toBe([...items].sort(byKey)[0]?.key)
  }
  expect(heap.sorted().map(({ key }) => key)).toEqual(items.map(({ key }) => key).sort((one, other) => one - other))
})

it('keeps the order when the last item moves up to the position of a removed item', () => {
  const items = [0, 10, 1, 11, 12, 2, 3].map((key): Item => ({ key }))
  const heap = new IndexedHeap<Item>(byKey)
  for (const item of items) heap.set(item)
  heap.delete(items[3] as Item)
  const drained: number[] = []
  for (let first = heap.first; first !== undefined; first = heap.first) {
    drained.push(first.key)
    heap.delete(first)
  }
  expect(drained).toEqual([0, 1, 2, 3, 10, 12])
})

it('ignores the removal of an unknown item', () => {
  const heap = new IndexedHeap<Item>(byKey)
  heap.set({ key: 1 })
  heap.delete({ key: 1 })
  expect(heap.size).toBe(1)
})

it('takes at most 3 log2(n) + 3 comparisons to change one of 8000 items', () => {
  let comparisons = 0
  let most = 0
  const heap = new IndexedHeap<Item>((one, other) => {
    comparisons++
    return byKey(one, other)
  })
  const items = Array.from({ length: 8000 }, (_, i): Item => ({ key: (i * 7919) % 10_007 }))
  const count = (change: () => void): void => {
    comparisons = 0
    change()
    most = Math.max(most, comparisons)
  }
  for (const item of items) count(() => heap.set(item))
  for (const [i, item] of items.entries())
    count(() => {
      item.key = i % 2 === 0 ? -i : 20_000 + i
      heap.set(item)
    })
  for (const item of items) count(() => heap.delete(item))
  expect(most).toBeLessThanOrEqual(3 * Math.log2(8000) + 3)
})
