/** Random histories: every query is compared with a linear search of a plain list. */
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../../src/core/seeded-random.js'
import type { FindQuery } from '../../../src/search-index.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { sharedRedis } from '../../servers/shared-redis.js'
import { freshIndex, idsOf, type Product } from './test-index.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => void client.disconnect())

const seed = randomSeed()
const histories = 12
const steps = 120
const maxRecords = 25
const recent = 7
const words = ['', 'a', 'ab', 'a\u0000', 'abc', 'b', '가', '가나', '각', '한국', '😀', '😀😁', 'z']
const categories = ['', 'x', 'x\u0000', 'xy', '한']
const colours = ['red', 'blue', '초록', '🟢']

/** Newest last. */
class Model {
  #records = new Map<string, Product>()

  put(id: string, record: Product): void {
    if (!this.#records.delete(id) && this.#records.size >= maxRecords) {
      const [oldest] = this.#records.keys()
      this.#records.delete(oldest as string)
    }
    this.#records.set(id, record)
  }

  get = (id: string): Product | undefined => this.#records.get(id)
  remove = (id: string): boolean => this.#records.delete(id)
  entries = (): [string, Product][] => [...this.#records]

  find({ by, equals: [equal] = [], from, below, prefix = '', tagged = {}, order }: FindQuery): string[] {
    const memberOf = ({ name, price, category }: Product): string | number | undefined =>
      by === 'name' ? name : by === 'shelf' && category !== equal ? undefined : (price ?? undefined)
    const rows = this.entries()
      .filter(([, { colours = [] }]) =>
        Object.values(tagged)
          .flat()
          .every((tag) => colours.includes(tag)),
      )
      .map(([id, record]) => ({ id, value: memberOf(record) }))
      .filter(({ value }) => value !== undefined && (from === undefined || compare(value, from) >= 0))
      .filter(({ value = '' }) => below === undefined || compare(value, below) < 0)
      .filter(({ value }) => typeof value === 'number' || value?.startsWith(prefix))
      .sort((one, other) => compare(one.value ?? 0, other.value ?? 0) || compare(one.id, other.id))
    const ids = rows.map(({ id }) => id)
    return order === 'descending' ? ids.reverse() : ids
  }

  suggest(prefix: string): { term: string; count: number }[] {
    const counts = new Map<string, number>()
    for (const [, { name = '', sold = 0 }] of this.entries())
      if (name !== '' && name.startsWith(prefix)) counts.set(name, (counts.get(name) ?? 0) + sold)
    const found = [...counts].map(([term, count]) => ({ term, count }))
    return found.sort((one, other) => other.count - one.count || compare(one.term, other.term))
  }
}

const compare = (one: string | number, other: string | number): number =>
  typeof one === 'number' ? one - Number(other) : Buffer.compare(Buffer.from(one), Buffer.from(String(other)))

describe(`random histories of ${steps} steps, seed ${seed}`, () => {
  it.each(Array.from({ length: histories }, (_, i) => seed + i))('match a plain list: %i', async (own) => {
    const random = seededRandom(own)
    const below = (count: number): number => Math.floor(random() * count)
    const some = <T>(list: readonly T[]): T => list[below(list.length)] as T
    const record = (): Product => ({
      sold: 1 + below(4),
      ...(random() < 0.9 && { name: some(words) }),
      ...(random() < 0.8 && { price: (below(9) - 4) / 2 }),
      ...(random() < 0.8 && { category: some(categories) }),
      ...(random() < 0.7 && { colours: [some(colours), some(colours)] }),
    })
    const question = (): FindQuery => ({
      limit: 1 + below(4),
      ...(random() < 0.5 && { order: 'descending' }),
      ...(random() < 0.3 && { tagged: { colours: [some(colours)] } }),
      ...some<() => FindQuery>([
        () => ({
          by: 'price',
          ...(random() < 0.5 && { from: below(5) - 2 }),
          ...(random() < 0.5 && { below: below(5) - 1 }),
        }),
        () => ({
          by: 'name',
          ...(random() < 0.5 ? { prefix: some(words) } : { from: some(words), below: some(words) }),
        }),
        () => ({ by: 'shelf', equals: [some(categories)], ...(random() < 0.5 && { from: below(5) - 2 }) }),
      ])(),
    })
    const index = freshIndex(client, { maxRecords, recent })
    const model = new Model()
    for (let step = 0; step < steps; step++) {
      const id = `${some(['', '한', '😀', '\u0000'])}${below(12)}`
      const kind = random()
      if (kind < 0.6) {
        const given = record()
        model.put(id, given)
        await index.put(id, given)
      } else if (kind < 0.8) {
        const before = model.get(id)
        if (before !== undefined) model.put(id, { ...before, price: 1 })
        expect(await index.update(id, (old) => ({ ...old, price: 1 }))).toEqual(model.get(id))
      } else {
        expect(await index.remove(id)).toBe(model.remove(id))
      }
      const query = question()
      expect([query, await idsOf(index, query)]).toEqual([query, model.find(query)])
      const prefix = some(words)
      expect(await index.suggest('words', prefix, 50)).toEqual(model.suggest(prefix))
      const newest = model.entries().reverse().slice(0, recent)
      expect(await index.recent()).toEqual(newest.map(([id, record]) => ({ id, record })))
    }
    expect(await index.verify()).toMatchObject({ problems: [], records: model.entries().length })
  })
})
