import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { type FindQuery, type SearchIndex, type SearchIndexOptions, searchIndex } from '../../../src/search-index.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { baseOf, freshIndex, idsOf, type Product, product } from './test-index.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => void client.disconnect())

const fresh = <Item extends object = Product>(options?: Partial<SearchIndexOptions>): SearchIndex<Item> =>
  freshIndex<Item>(client, options)

describe('verify and rebuild', () => {
  const damaged: [string, (base: string) => Promise<unknown>][] = [
    ['a missing number', (base) => client.zrem(`${base}:1:0:scores`, 'a')],
    ['a wrong number', (base) => client.zadd(`${base}:1:0:scores`, 77, 'a')],
    ['a number of nobody', (base) => client.zadd(`${base}:1:0:scores`, 1, 'nobody')],
    ['a missing text', (base) => client.del(`${base}:1:1:places`)],
    ['a missing tag', (base) => client.srem(`${base}:1:3:tag:red`, 'a')],
    ['a wrong tag', (base) => client.sadd(`${base}:1:3:tag:red`, 'b')],
    ['a wrong number of tagged ones', (base) => client.hincrby(`${base}:1:3:tags`, 'red', 1)],
    ['a wrong frequency', (base) => client.zincrby(`${base}:1:4:ranks`, -1, 'a')],
    ['a missing term', (base) => client.zrem(`${base}:1:4:terms`, 'a')],
    ['a wrong order', (base) => client.zadd(`${base}:1:order`, 9, 'a')],
    ['a wrong list', (base) => client.lpush(`${base}:1:recent`, 'a')],
    ['a record that was lost', (base) => client.hdel(`${base}:records`, 'b')],
  ]

  it.each(damaged)('find and repair %s', async (_, damage) => {
    const prefix = freshPrefix()
    const index = fresh({ prefix })
    await index.put('a', product('a', 1, 2, { colours: ['red', 'blue'], category: 'x' }))
    await index.put('b', product('b', 2, 3, { colours: ['blue'] }))
    expect(await index.verify()).toMatchObject({ isSound: true, records: 2, problems: [], changedMeanwhile: false })
    await damage(baseOf(prefix))
    const report = await index.verify()
    expect(report.isSound).toBe(false)
    expect(report.problemCount).toBeGreaterThan(0)
    await index.rebuild()
    expect((await index.verify()).problems).toEqual([])
    expect(await idsOf(index, { by: 'price' })).toEqual(expect.arrayContaining(['a']))
  })

  it('leave no keys behind', async () => {
    const prefix = freshPrefix()
    const index = fresh({ prefix })
    for (let i = 0; i < 20; i++)
      await index.put(`p${i}`, product(`x${i}`, i, 1, { colours: [`tag ${i}`], category: 'y' }))
    const keys = async () => (await client.keys(`${prefix}*`)).map((key) => key.replace(/:\d+:/, ':')).sort()
    const before = await keys()
    await index.rebuild()
    expect(await keys()).toEqual(before)
    for (let i = 0; i < 20; i++) await index.remove(`p${i}`)
    expect(await keys()).toEqual([`${baseOf(prefix)}:meta`])
  })

  it('another definition is rejected until a rebuild, and edits continue during it', async () => {
    const prefix = freshPrefix()
    const before = fresh({ prefix })
    const after = fresh({ prefix, fields: { sold: { kind: 'number' } } })
    for (let i = 0; i < 10; i++) await before.put(`p${i}`, product(`x${i}`, i, i + 1))
    const changed = { code: 'FLUXGATE_INDEX_CHANGED', message: expect.stringContaining('created with other fields') }
    await expect(after.put('q', product('q', 1))).rejects.toMatchObject(changed)
    await expect(after.find({ by: 'sold' })).rejects.toMatchObject(changed)
    expect(await after.get('p3')).toMatchObject({ price: 3 })
    expect(await after.rebuild()).toEqual({ records: 10 })
    expect(await idsOf(after, { by: 'sold', from: 9 })).toEqual(['p8', 'p9'])
    await expect(before.put('q', product('q', 1))).rejects.toMatchObject(changed)
    expect((await after.verify()).problems).toEqual([])
  })

  it('an unfinished rebuild is reported and resumed', async () => {
    const prefix = freshPrefix()
    const index = fresh({ prefix })
    for (let i = 0; i < 10; i++) await index.put(`p${i}`, product(`x${i}`, i))
    const base = baseOf(prefix)
    await client.hset(`${base}:meta`, { rebuilding: 1, generation: 2, oldest: 1 })
    const rebuilding = { code: 'FLUXGATE_INDEX_CHANGED', message: expect.stringContaining('is being rebuilt') }
    await expect(index.find({ by: 'price' })).rejects.toMatchObject(rebuilding)
    await index.put('p3', product('x3', 33))
    await index.remove('p4')
    await index.rebuild()
    expect((await index.verify()).problems).toEqual([])
    expect(await idsOf(index, { by: 'price', from: 8 })).toEqual(['p8', 'p9', 'p3'])
    expect(await client.keys(`${base}:1:*`)).toEqual([])
  })

  it('records that do not fit new fields are reported', async () => {
    const prefix = freshPrefix()
    await fresh<object>({ prefix, fields: {} }).put('a', { price: 'cheap' })
    const after = fresh({ prefix })
    await expect(after.rebuild()).rejects.toMatchObject({
      code: 'FLUXGATE_ARGUMENT_INVALID',
      errors: [{ path: 'a', message: 'price must be a number.' }],
    })
    await after.remove('a')
    expect(await after.rebuild()).toEqual({ records: 0 })
  })
})

describe('invalid input', () => {
  it.each<[string, object]>([
    ['name must be ', { name: 'a b' }],
    ['options.maxRecord: unknown field "maxRecord"; did you mean maxRecords?', { maxRecord: 1 }],
    ['recent must be ', { recent: 1_001 }],
    ['maxRecords must be ', { maxRecords: 0 }],
    ['evict must be ', { evict: { least: 'name' } }],
    ['prefix must be ', { prefix: 'a{b' }],
    ['timeoutMs must be ', { timeoutMs: 0 }],
    ['fields.x must be ', { fields: { x: { kind: 'date' } } }],
    ['fields["a b"] must be a name of 1 to 64 letters', { fields: { 'a b': { kind: 'text' } } }],
    [
      'options.fields.x.weight: unknown field "weight"; allowed: kind, from',
      { fields: { x: { kind: 'text', weight: 'y' } } },
    ],
    ['fields.x.of must be ', { fields: { x: { kind: 'composite' } } }],
    ['fields.x.of must be ', { fields: { x: { kind: 'composite', of: 'y' } } }],
    ['fields.x.from must be ', { fields: { x: { kind: 'number', from: 1 } } }],
  ])('rejects a definition with "%s…"', (message, options) => {
    expect(() => searchIndex(client, { name: 'x', ...options })).toThrow(message)
  })

  it.each<[string, object]>([
    ['by must be ', { by: 'nothing' }],
    ['by must be ', { by: 'words' }],
    ['order must be ', { by: 'price', order: 'up' }],
    ['limit must be ', { by: 'price', limit: 1_001 }],
    ['limit must be ', { by: 'price', limit: 0 }],
    ['from, above, to and below must be numbers', { by: 'price', from: 'a' }],
    ['equals and prefix must be omitted for a number field', { by: 'price', prefix: 'a' }],
    ['equals must be ', { by: 'name', equals: ['a', 'b'] }],
    ['equals must be ', { by: 'name', equals: ['a'], from: 'b' }],
    ['tagged.name must be ', { by: 'price', tagged: { name: 'a' } }],
    ['cursor must be ', { by: 'price', cursor: 'nonsense' }],
    ['cursor must be ', { by: 'price', cursor: Buffer.from('1+:0:x').toString('base64url') }],
    ['cursor must be ', { by: 'price', cursor: 7 }],
    ['query.form: unknown field "form"; did you mean from?', { by: 'price', form: 7 }],
  ])('rejects a query with "%s…"', async (message, query) => {
    await expect(fresh().find(query as FindQuery)).rejects.toThrow(message)
  })

  it('is reported if something is missing', async () => {
    expect(() => searchIndex(client, undefined as never)).toThrow('options must be ')
    await expect(fresh().find(null as never)).rejects.toThrow('query must be ')
    await expect(fresh().update('a', undefined as never)).rejects.toThrow('change must be ')
  })

  it('rejected by the server is an error with its cause', async () => {
    const prefix = freshPrefix()
    await client.set(`${baseOf(prefix)}:records`, randomBytes(8))
    await expect(fresh({ prefix }).put('a', product('a', 1))).rejects.toMatchObject({
      code: 'FLUXGATE_STORE_FAILED',
      message: expect.stringContaining('The search index failed to write a record: WRONGTYPE'),
      cause: expect.any(Error),
    })
  })

  it('does not prevent recovery: a server that times out is reported, and the next edit succeeds when it replies', async () => {
    const server = await stopAfterTest(startRedis())
    const index = searchIndex<Product>(server.uri, { name: 'products', fields: {}, timeoutMs: 200 })
    onTestFinished(() => index.close())
    await eventually('an edit succeeds', () => index.put('a', product('a', 1)).then(() => true))
    server.pause()
    await expect(index.put('b', product('b', 1))).rejects.toMatchObject({
      code: 'FLUXGATE_STORE_TIMEOUT',
      message: expect.stringContaining('failed to write a record: Redis did not reply within 200 ms'),
    })
    server.resume()
    await eventually('an edit succeeds', async () => {
      await index.put('c', product('c', 1))
      return true
    })
    expect(await eventually('a read succeeds', () => index.get('c'))).toEqual(product('c', 1))
  })
})
