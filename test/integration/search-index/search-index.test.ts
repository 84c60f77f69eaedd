import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import type { FindQuery, SearchIndex, SearchIndexOptions } from '../../../src/search-index.js'
import { sharedRedis } from '../../servers/shared-redis.js'
import { freshIndex, idsOf, type Product, product } from './test-index.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => void client.disconnect())

const fresh = <Item extends object = Product>(options?: Partial<SearchIndexOptions>): SearchIndex<Item> =>
  freshIndex<Item>(client, options)

describe('records', () => {
  it('are written, read, replaced and removed', async () => {
    const index = fresh()
    expect(await index.get('a')).toBeUndefined()
    await index.put('a', product('pen', 3))
    expect(await index.get('a')).toEqual({ name: 'pen', price: 3, sold: 1 })
    expect(await index.insert('a', product('ink', 9))).toBe(false)
    expect(await index.insert('b', product('ink', 9))).toBe(true)
    await index.put('a', product('pencil', 2))
    expect(await index.get('a')).toMatchObject({ name: 'pencil', price: 2 })
    expect(await index.count()).toBe(2)
    expect(await index.remove('a')).toBe(true)
    expect(await index.remove('a')).toBe(false)
    expect(await index.count()).toBe(1)
  })

  it('are restored unchanged, whatever their ids and texts contain', async () => {
    const index = fresh<Record<string, unknown>>({ fields: {} })
    const record = { text: 'a\u0000b 한국어 😀 "\\" \u2028', nested: { list: [1, null, true, 1e300] }, __proto__x: 1 }
    for (const id of ['\u0000', '{tag}', '한', '😀', 'a:b', ' ', 'x'.repeat(255)]) {
      await index.put(id, record)
      expect(await index.get(id)).toEqual(record)
    }
  })

  it('are updated from their current value, also under concurrent updates', async () => {
    const index = fresh()
    await index.put('a', product('pen', 0))
    const raise = () => index.update('a', (record) => ({ ...record, price: Number(record.price) + 1 }))
    await Promise.all(Array.from({ length: 20 }, raise))
    expect(await index.get('a')).toMatchObject({ price: 20 })
    expect(await idsOf(index, { by: 'price', from: 20, to: 20 })).toEqual(['a'])
    expect(await index.update('nobody', (record) => record)).toBeUndefined()
    expect(await index.update('a', () => undefined)).toBeUndefined()
    expect((await index.verify()).isSound).toBe(true)
  })

  it('that are invalid are rejected with the path and change nothing', async () => {
    const index = fresh<Record<string, unknown>>()
    await index.put('a', { name: 'pen', sold: 1 })
    const refused = async (id: string, record: object, message: string) =>
      await expect(index.put(id, record as Record<string, unknown>)).rejects.toMatchObject({
        code: 'FLUXGATE_ARGUMENT_INVALID',
        message: expect.stringContaining(message),
      })
    await refused('', {}, 'id must be a string of 1 to 255 bytes')
    await refused('x'.repeat(256), {}, 'id must be ')
    await refused('\ud800', {}, 'id must be a well-formed string')
    await refused('a', { price: 'cheap' }, 'price must be a number')
    await refused('a', { name: 7, sold: 1 }, 'name must be ')
    await refused('a', { name: 'x\udc00', sold: 1 }, 'name must be ')
    await refused('a', { name: 'pen', sold: 0 }, 'sold must be an integer from 1 to 1000000000')
    await refused('a', { name: 'pen' }, 'sold must be ')
    await refused('a', { colours: Array.from({ length: 65 }, String) }, 'colours must be a list of up to 64 strings')
    for (const price of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
      await refused('a', { price }, 'price must be a finite number')
    const holdsItself: Record<string, unknown> = {}
    holdsItself.self = holdsItself
    await refused('a', holdsItself, 'record must be ')
    await refused('a', { price: 1n }, 'record must be ')
    await refused('a', [] as object, 'record must be ')
    await refused('a', { long: 'x'.repeat(300_000) }, 'record must be ')
    expect(await index.get('a')).toEqual({ name: 'pen', sold: 1 })
  })
})

describe('a number field', () => {
  it('finds values between bounds, in both orders', async () => {
    const index = fresh()
    for (const price of [-1.5, 0, 1, 2, 2.5, 1e21]) await index.put(`p${price}`, product('x', price))
    await index.put('none', { name: 'x', sold: 1, price: null })
    expect(await idsOf(index, { by: 'price' })).toEqual(['p-1.5', 'p0', 'p1', 'p2', 'p2.5', 'p1e+21'])
    expect(await idsOf(index, { by: 'price', from: 1, to: 2 })).toEqual(['p1', 'p2'])
    expect(await idsOf(index, { by: 'price', above: 1, below: 2.5 })).toEqual(['p2'])
    expect(await idsOf(index, { by: 'price', from: 2, order: 'descending' })).toEqual(['p1e+21', 'p2.5', 'p2'])
    expect(await idsOf(index, { by: 'price', below: 0, order: 'descending' })).toEqual(['p-1.5'])
    expect(await idsOf(index, { by: 'price', from: 3, to: 1 })).toEqual([])
  })

  it('returns pages that neither skip nor repeat records with equal numbers, during concurrent writes', async () => {
    const index = fresh()
    for (let i = 0; i < 30; i++) await index.put(`p${String(i).padStart(2, '0')}`, product('x', i < 25 ? 7 : i))
    for (const order of ['ascending', 'descending'] as const) {
      const first = await index.find({ by: 'price', order, limit: 10 })
      const last = first.items.at(-1)?.id as string
      // The record at the cursor is removed or changed, and records are inserted before it.
      await index.remove(last)
      await index.put('aa', product('x', order === 'ascending' ? -1 : 99))
      const others = await idsOf(index, { by: 'price', order, limit: 10 })
      const rest: string[] = []
      for (let { cursor } = first; cursor !== null; ) {
        const page = await index.find({ by: 'price', order, limit: 7, cursor })
        rest.push(...page.items.map(({ id }) => id))
        cursor = page.cursor
      }
      expect([...first.items.map(({ id }) => id), ...rest]).toEqual([
        ...others.filter((id) => id !== 'aa').slice(0, 9),
        last,
        ...others.filter((id) => id !== 'aa').slice(9),
      ])
      await index.remove('aa')
      await index.put(last, product('x', 7))
    }
  })

  it('reports the last page', async () => {
    const index = fresh()
    for (let i = 0; i < 4; i++) await index.put(`p${i}`, product('x', i))
    expect((await index.find({ by: 'price', limit: 4 })).cursor).toBeNull()
    const { cursor } = await index.find({ by: 'price', limit: 3 })
    expect(cursor).not.toBeNull()
    expect(await index.find({ by: 'price', limit: 3, cursor })).toMatchObject({ items: [{ id: 'p3' }], cursor: null })
  })
})

describe('a text field', () => {
  const words = [
    '',
    'a',
    'ab',
    'a\u0000',
    'a\u0000b',
    'a\u0001',
    'b',
    'z',
    'ÿ',
    '가',
    '가나',
    '각',
    '한국',
    '힣',
    '😀',
    '😀😁',
    '\u{10ffff}',
  ]

  it('is ordered by code points and finds values between bounds', async () => {
    const index = fresh({ fields: { name: { kind: 'text' } } })
    for (const name of words) await index.put(`id of ${name}`, { name })
    const byBytes = [...words].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
    const found = async (query: Partial<FindQuery>) =>
      (await idsOf(index, { by: 'name', limit: 5, ...query })).map((id) => id.slice(6))
    expect(await found({})).toEqual(byBytes)
    expect(await found({ order: 'descending' })).toEqual([...byBytes].reverse())
    for (const bound of words) {
      const at = byBytes.indexOf(bound)
      expect(await found({ from: bound })).toEqual(byBytes.slice(at))
      expect(await found({ above: bound })).toEqual(byBytes.slice(at + 1))
      expect(await found({ to: bound })).toEqual(byBytes.slice(0, at + 1))
      expect(await found({ below: bound })).toEqual(byBytes.slice(0, at))
    }
  })

  it('finds exactly the values with a prefix, in every script', async () => {
    const index = fresh({ fields: { name: { kind: 'text' } } })
    for (const name of words) await index.put(`id of ${name}`, { name })
    for (const prefix of words) {
      const found = (await idsOf(index, { by: 'name', prefix })).map((id) => id.slice(6))
      expect(found.sort()).toEqual(words.filter((word) => word.startsWith(prefix)).sort())
    }
  })
})

describe('a composite field', () => {
  const shelf = async (): Promise<SearchIndex<Product>> => {
    const index = fresh()
    const rows: [string, string, number][] = [
      ['a', 'pens', 3],
      ['b', 'pens', -2],
      ['c', 'pen', 10],
      ['d', 'pens', 20],
      ['e', 'ink', 3],
    ]
    for (const [id, category, price] of rows) await index.put(id, product('x', price, 1, { category }))
    await index.put('f', { category: 'pens' })
    return index
  }

  it('orders by one member within another', async () => {
    const index = await shelf()
    expect(await idsOf(index, { by: 'shelf' })).toEqual(['e', 'c', 'b', 'a', 'd'])
    expect(await idsOf(index, { by: 'shelf', equals: ['pens'] })).toEqual(['b', 'a', 'd'])
    expect(await idsOf(index, { by: 'shelf', equals: ['pens'], order: 'descending' })).toEqual(['d', 'a', 'b'])
    expect(await idsOf(index, { by: 'shelf', equals: ['pens'], from: -2, below: 20 })).toEqual(['b', 'a'])
    expect(await idsOf(index, { by: 'shelf', equals: ['pens', 3] })).toEqual(['a'])
    expect(await idsOf(index, { by: 'shelf', prefix: 'pe' })).toEqual(['c', 'b', 'a', 'd'])
  })

  it('accepts a list as one of its members', async () => {
    const index = fresh({ fields: { painted: { kind: 'composite', of: ['colours', 'price'] } } })
    await index.put('a', product('x', 3, 1, { colours: ['red', 'blue'] }))
    await index.put('b', product('x', 1, 1, { colours: ['red'] }))
    expect(await idsOf(index, { by: 'painted', equals: ['red'] })).toEqual(['b', 'a'])
    expect(await idsOf(index, { by: 'painted', equals: ['blue'] })).toEqual(['a'])
  })
})

describe('tags', () => {
  it('sample random records with all given tags, each once', async () => {
    const index = fresh()
    for (let i = 0; i < 20; i++)
      await index.put(`p${i}`, product('x', i, 1, { colours: i % 2 === 0 ? ['red', 'red', 'blue'] : ['blue'] }))
    expect(await index.count({ field: 'colours', tag: 'red' })).toBe(10)
    expect(await index.count({ field: 'colours', tag: 'green' })).toBe(0)
    const sample = await index.sample(6, { field: 'colours', tag: 'red' })
    expect(new Set(sample.map(({ id }) => id)).size).toBe(6)
    for (const { record } of sample) expect(record.colours).toContain('red')
    expect(await index.sample(50, { field: 'colours', tag: 'red' })).toHaveLength(10)
    expect(await index.sample(50)).toHaveLength(20)
    const seen = new Set<string>()
    for (let i = 0; i < 400 && seen.size < 20; i++) for (const { id } of await index.sample(2)) seen.add(id)
    expect(seen.size).toBe(20)
  })

  it('narrow down other queries', async () => {
    const index = fresh()
    for (let i = 0; i < 50; i++)
      await index.put(`p${i}`, product('x', i, 1, { colours: [i % 2 ? 'odd' : 'even', i % 5 ? 'some' : 'fifth'] }))
    const tagged = { colours: ['odd', 'fifth'] }
    expect(await idsOf(index, { by: 'price', tagged, limit: 2 })).toEqual(['p5', 'p15', 'p25', 'p35', 'p45'])
    expect(await idsOf(index, { by: 'price', tagged: { colours: 'fifth' }, from: 30 })).toEqual([
      'p30',
      'p35',
      'p40',
      'p45',
    ])
    expect(await idsOf(index, { by: 'colours', equals: ['fifth'], limit: 3 })).toHaveLength(10)
  })
})

describe('suggestions', () => {
  it('are the most frequent terms with a prefix', async () => {
    const index = fresh()
    const sold: [string, number][] = [
      ['한국어', 5],
      ['한글', 9],
      ['한', 1],
      ['하늘', 7],
      ['😀 face', 2],
      ['😀', 3],
      ['apple', 4],
      ['app', 4],
    ]
    for (const [name, count] of sold) await index.put(name, product(name, 1, count))
    await index.put('again', product('한국어', 1, 6))
    const terms = async (prefix: string, limit?: number) =>
      (await index.suggest('words', prefix, limit)).map(({ term, count }) => `${term} ${count}`)
    expect(await terms('한')).toEqual(['한국어 11', '한글 9', '한 1'])
    expect(await terms('한', 1)).toEqual(['한국어 11'])
    expect(await terms('😀')).toEqual(['😀 3', '😀 face 2'])
    expect(await terms('ap')).toEqual(['app 4', 'apple 4'])
    expect(await terms('x')).toEqual([])
    expect(await terms('', 3)).toEqual(['한국어 11', '한글 9', '하늘 7'])
    await index.remove('한국어')
    await index.put('한글', product('hangeul', 1, 9))
    expect(await terms('한')).toEqual(['한국어 6', '한 1'])
  })

  it('are exact for prefixes shared by thousands of terms, even when the most frequent ones are removed', async () => {
    const index = fresh<{ term: string; uses: number }>({
      fields: { term: { kind: 'suggest', weight: 'uses' } },
      recent: 0,
    })
    const count = 5_000
    const uses = (i: number) => 1 + ((i * 7_919) % count)
    const all = Array.from({ length: count }, (_, i) => ({ term: `user:${String(i).padStart(5, '0')}`, uses: uses(i) }))
    await Promise.all(all.map((record, i) => index.put(String(i), record)))
    const best = (prefix: string, gone: ReadonlySet<string> = new Set()) =>
      all
        .filter(({ term }) => term.startsWith(prefix) && !gone.has(term))
        .sort((one, other) => other.uses - one.uses)
        .slice(0, 50)
        .map(({ term, uses }) => ({ term, count: uses }))
    const prefixes = ['', 'u', 'user:', 'user:0', 'user:00', 'user:042', 'user:9']
    for (const prefix of prefixes) expect(await index.suggest('term', prefix, 50)).toEqual(best(prefix))
    expect((await index.verify()).problems).toEqual([])
    const gone = new Set(best('').map(({ term }) => term))
    for (const { term } of best('user:00')) gone.add(term)
    for (const term of gone) await index.remove(String(Number(term.slice(5))))
    for (const prefix of prefixes) expect(await index.suggest('term', prefix, 50)).toEqual(best(prefix, gone))
    expect((await index.verify()).problems).toEqual([])
  })

  it('stay exact while thousands of terms of equal frequency are added and removed', { timeout: 120_000 }, async () => {
    const index = fresh<{ term: string }>({ fields: { term: { kind: 'suggest' } }, recent: 0, maxRecords: 12_000 })
    // The oldest are removed first, in an order unrelated to their texts.
    const terms = Array.from({ length: 15_000 }, (_, i) => `user:${String((i * 7_919) % 15_013).padStart(5, '0')}`)
    for (let i = 0; i < terms.length; i += 500)
      await Promise.all(terms.slice(i, i + 500).map((term) => index.put(term, { term })))
    const left = terms.slice(3_000)
    const first = (prefix: string) =>
      left
        .filter((term) => term.startsWith(prefix))
        .sort()
        .slice(0, 50)
        .map((term) => ({ term, count: 1 }))
    for (const prefix of ['', 'user:', 'user:1', 'user:0', 'user:09', 'user:145', 'user:1459'])
      expect([prefix, await index.suggest('term', prefix, 50)]).toEqual([prefix, first(prefix)])
    expect((await index.verify()).problems).toEqual([])
    // Removes the first terms until few cached ones are left.
    for (let round = 0; round < 5; round++) {
      const gone = new Set(first('user:1').map(({ term }) => term))
      for (const term of gone) await index.remove(term)
      left.splice(0, left.length, ...left.filter((term) => !gone.has(term)))
      expect(await index.suggest('term', 'user:1', 50)).toEqual(first('user:1'))
    }
    expect((await index.verify()).problems).toEqual([])
  })
})

describe('the newest records', () => {
  it('are listed, newest first; a removed one makes room for the one before', async () => {
    const index = fresh({ recent: 3 })
    const ids = async () => (await index.recent()).map(({ id }) => id)
    for (const id of ['a', 'b', 'c', 'd']) await index.put(id, product(id, 1))
    expect(await ids()).toEqual(['d', 'c', 'b'])
    await index.put('c', product('c', 2))
    expect(await ids()).toEqual(['c', 'd', 'b'])
    await index.remove('d')
    expect(await ids()).toEqual(['c', 'b', 'a'])
    expect((await index.recent(1)).map(({ id }) => id)).toEqual(['c'])
    expect((await index.verify()).problems).toEqual([])
  })
})

describe('bounds', () => {
  it('the oldest record is evicted when there are too many', async () => {
    const index = fresh({ maxRecords: 3 })
    for (const id of ['a', 'b', 'c']) await index.put(id, product(id, 1))
    await index.put('a', product('a', 2))
    await index.put('d', product('d', 1))
    expect(await idsOf(index, { by: 'price' })).toEqual(['c', 'd', 'a'])
    expect(await index.get('b')).toBeUndefined()
    expect(await index.suggest('words', 'b')).toEqual([])
    expect((await index.verify()).problems).toEqual([])
  })

  it('or the record with the lowest value; a new record is always kept', async () => {
    const index = fresh({ maxRecords: 2, evict: { least: 'price' } })
    await index.put('a', product('a', 5))
    await index.put('b', product('b', 3))
    await index.put('c', product('c', 1))
    expect(await idsOf(index, { by: 'price' })).toEqual(['c', 'a'])
    await index.put('d', product('d', 1))
    expect(await idsOf(index, { by: 'price' })).toEqual(['d', 'a'])
    expect((await index.verify()).problems).toEqual([])
  })
})

describe('forged cursors', () => {
  const forged = (field: number, order: 'ascending' | 'descending', score: string, member: string) =>
    Buffer.from(`${field}${order === 'ascending' ? '+' : '-'}:${score}:${member}`, 'latin1').toString('base64url')

  it.each([
    ['scores', 'price', { from: 3, to: 5 }, ['p3', 'p4', 'p5']],
    ['scores above and below', 'price', { above: 3, below: 5 }, ['p4']],
    ['texts', 'name', { from: 'n3', to: 'n5' }, ['p3', 'p4', 'p5']],
    ['texts above and below', 'name', { above: 'n3', below: 'n5' }, ['p4']],
    ['texts by prefix', 'name', { prefix: 'n4' }, ['p4']],
    ['texts without bounds', 'name', {}, ['p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8', 'p9']],
    ['composites', 'shelf', { equals: ['b'] }, ['p3', 'p4', 'p5']],
    ['bounded composites', 'shelf', { equals: ['b'], from: 4 }, ['p4', 'p5']],
    ['tags', 'colours', { equals: ['green'] }, ['p3', 'p4', 'p5']],
  ] as const)('of %s do not leave the bounds of the query', async (_, by, bounds, within) => {
    const index = fresh()
    for (let i = 0; i < 10; i++) {
      const [category, colour] = i < 3 ? ['a', 'blue'] : i < 6 ? ['b', 'green'] : ['c', 'red']
      await index.put(`p${i}`, product(`n${i}`, i, 1, { category, colours: [colour] }))
    }
    const field = ['price', 'name', 'shelf', 'colours'].indexOf(by)
    for (const order of ['ascending', 'descending'] as const) {
      // All positions and scores, including those of other queries.
      const own = await index.find({ by, order, limit: 1 })
      const cursors = [
        own.cursor,
        ...['-1e9', '-1', '0', '4', '1e999'].map((score) => forged(field, order, score, 'p4')),
      ]
      for (const member of ['', '\0', 'a', 'n4', 'z', '\xff\xff\xff']) cursors.push(forged(field, order, '0', member))
      for (const cursor of cursors) {
        const { items } = await index.find({ by, ...bounds, order, cursor })
        for (const { id } of items) expect(within, `${order} ${cursor}`).toContain(id)
      }
      const before = forged(field, order, order === 'ascending' ? '-1e9' : '1e999', order === 'ascending' ? '' : '\xff')
      const all = order === 'ascending' ? within : within.toReversed()
      expect((await index.find({ by, ...bounds, order, cursor: before })).items.map(({ id }) => id)).toEqual(all)
    }
  })
})
