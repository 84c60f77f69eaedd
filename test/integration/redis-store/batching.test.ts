/** Decisions of one turn are sent in one call, with the same results as one by one. */
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { type BucketStore, type Charge, copyResult } from '../../../src/core/bucket-store.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { type RedisStoreOptions, redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { randomBand, randomCharges, randomPause } from '../../../src/testing/random-charges.js'
import { commandCounts, countCalls } from '../../fixtures/command-counts.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { redisKeyOf } from '../../fixtures/redis-key-of.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const server = await ownRedis()
const client = clientOf(server)

const open = (options: RedisStoreOptions = {}) =>
  redisStore(client, { prefix: freshPrefix(), clock: manualClock(startMs), timeoutMs: 20_000, ...options })

const ask = (store: BucketStore, demands: readonly Charge[]) =>
  Promise.all(demands.map((one) => store.charge([one], false)))
const identities = (count: number) => Array.from({ length: count }, (_, i) => `id${i}`)
const rule = group('rule', [band({ capacity: 5 })])
const granted = (results: readonly { granted: boolean }[]) => results.map((result) => result.granted)

describe('decisions of one turn', () => {
  it('are one call to the server, and those of two turns are two', async () => {
    const store = open()
    await ask(store, [chargeOf(rule, 'warm')])
    const one = await countCalls(server, ['evalsha', 'eval'], () =>
      ask(
        store,
        identities(100).map((key) => chargeOf(rule, key)),
      ),
    )
    expect(one).toEqual({ evalsha: 1, eval: 0 })
    const two = await countCalls(server, ['evalsha'], async () => {
      await ask(store, [chargeOf(rule, 'a'), chargeOf(rule, 'b')])
      await ask(store, [chargeOf(rule, 'a')])
    })
    expect(two).toEqual({ evalsha: 2 })
  })

  it('are split into several calls if there are many, so the server is never blocked for long', async () => {
    const store = open()
    const many = identities(1_000).map((key) => chargeOf(rule, key))
    expect(await countCalls(server, ['evalsha'], () => ask(store, many))).toEqual({ evalsha: 8 })
    // A log costs as much as eight other buckets.
    const log = group('log', [band({ algorithm: 'SLIDING_WINDOW_LOG' })])
    const logs = identities(100).map((key) => chargeOf(log, key))
    expect(await countCalls(server, ['evalsha'], () => ask(store, logs))).toEqual({ evalsha: 7 })
    const wide = group(
      'wide',
      Array.from({ length: 8 }, (_, i) => band({ label: `b${i}` })),
    )
    const wides = identities(129).map((key) => chargeOf(wide, key))
    expect(await countCalls(server, ['evalsha'], () => ask(store, wides))).toEqual({ evalsha: 3 })
  })

  it('are decided in order', async () => {
    const store = open()
    const twelve = await ask(store, Array(12).fill(chargeOf(rule, 'a')))
    expect(granted(twelve)).toEqual([...Array(5).fill(true), ...Array(7).fill(false)])
    // Over several calls, too.
    const large = group('large', [band({ capacity: 200 })])
    const many = await ask(store, Array(300).fill(chargeOf(large, 'a')))
    expect(granted(many)).toEqual([...Array(200).fill(true), ...Array(100).fill(false)])
    expect(many.slice(0, 200).map(({ bands }) => bands[0]?.remaining)).toEqual(
      Array.from({ length: 200 }, (_, i) => 199 - i),
    )
  })

  it('are atomic: each decision charges all its buckets or none', async () => {
    const store = open()
    const loose = group('loose', [band({ capacity: 100 })])
    const results = await Promise.all(
      Array.from({ length: 100 }, () => store.charge([chargeOf(loose, 'a'), chargeOf(rule, 'a')], false)),
    )
    expect(granted(results).filter(Boolean)).toHaveLength(5)
    expect((await store.charge([chargeOf(loose, 'a')], false)).bands[0]?.remaining).toBe(94)
  })
})

describe('a value that is not a bucket', () => {
  const prefix = 'broken'
  const algorithms = ['TOKEN_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG'] as const
  const nameOf = (key: string) => redisKeyOf(prefix, group('rule', []), key)

  it.each(algorithms)(
    '%s: fails its own decision and no other of the same call, until it is reset',
    async (algorithm) => {
      for (const garbage of ['garbage', 'x'.repeat(28), 'x'.repeat(29), 'x'.repeat(56), 'x'.repeat(5_000)]) {
        const store = open({ prefix, cachedRejections: false })
        const one = group('rule', [band({ algorithm, capacity: 5 })])
        await client.set(nameOf('bad'), garbage)
        const asked = ['before', 'bad', 'after'].map((key) => store.charge([chargeOf(one, key)], false))
        const [before, bad, after] = await Promise.allSettled([
          ...asked,
          store.charge([chargeOf(one, 'good'), chargeOf(one, 'bad')], false),
        ])
        expect([before, after]).toMatchObject(Array(2).fill({ status: 'fulfilled', value: { granted: true } }))
        expect(bad).toMatchObject({
          status: 'rejected',
          reason: {
            code: 'FLUXGATE_BUCKET_INVALID',
            message: `The bucket store could not decide: ${nameOf('bad')} holds something that is not a bucket.`,
          },
        })
        // The failed decision charged nothing.
        expect((await store.charge([chargeOf(one, 'good')], true)).bands[0]?.remaining).toBe(4)
        for (const key of ['bad', 'before', 'after']) await store.reset(one, key)
        expect((await store.charge([chargeOf(one, 'bad')], false)).bands[0]?.remaining).toBe(4)
        await store.reset(one, 'bad')
      }
    },
  )

  it.each(algorithms)('%s: if empty, affects no other key', async (algorithm) => {
    const store = open({ prefix, cachedRejections: false })
    const one = group('rule', [band({ algorithm, capacity: 5 })])
    await client.set(nameOf('empty'), '')
    const [, other] = await Promise.allSettled(
      ['empty', 'other'].map((key) => store.charge([chargeOf(one, key)], false)),
    )
    expect(other).toMatchObject({ status: 'fulfilled', value: { granted: true } })
    await store.reset(one, 'empty')
    expect((await store.charge([chargeOf(one, 'empty')], false)).granted).toBe(true)
    for (const key of ['empty', 'other']) await store.reset(one, key)
  })

  it.each(algorithms)('%s: of another type affects no other key and is removed by a reset', async (algorithm) => {
    const store = open({ prefix, cachedRejections: false })
    const one = group('rule', [band({ algorithm, capacity: 5 })])
    await client.rpush(nameOf('list'), 'a', 'b')
    const [list, other] = await Promise.allSettled(
      ['list', 'other'].map((key) => store.charge([chargeOf(one, key)], false)),
    )
    expect(other).toMatchObject({ status: 'fulfilled', value: { granted: true } })
    // Numbers are read many at once, and what has another type is then the same as nothing.
    if (algorithm === 'SLIDING_WINDOW_LOG')
      expect(list).toMatchObject({ status: 'rejected', reason: { code: 'FLUXGATE_BUCKET_INVALID' } })
    else expect(list).toMatchObject({ status: 'fulfilled', value: { granted: true } })
    for (const key of ['list', 'other']) await store.reset(one, key)
    expect((await store.charge([chargeOf(one, 'list')], false)).bands[0]?.remaining).toBe(4)
    await store.reset(one, 'list')
  })

  it('of another algorithm is treated as missing', async () => {
    const store = open({ prefix, cachedRejections: false })
    const bands = [...algorithms, 'LEAKY_BUCKET', 'SLIDING_WINDOW_COUNTER'] as const
    for (const before of bands)
      for (const after of bands.filter((algorithm) => algorithm !== before)) {
        const [old, edited] = [before, after].map((algorithm) => group('rule', [band({ algorithm, capacity: 2 })]))
        if (old === undefined || edited === undefined) return expect.unreachable()
        await store.charge([chargeOf(old, 'a', { permits: 2 })], false)
        const { bands } = await store.charge([chargeOf(edited, 'a')], false)
        expect([before, after, bands[0]?.remaining]).toEqual([before, after, 1])
        await store.reset(edited, 'a')
      }
  })
})

describe('charges, peeks, refunds and resets of one turn', () => {
  const seed = randomSeed()
  // Token buckets and fixed windows have a path of their own in the script if all bands of a decision have them.
  it.each([
    { cachedRejections: false, choice: { maxCapacity: 10 } },
    { cachedRejections: true, choice: { maxCapacity: 10 } },
    { cachedRejections: false, choice: { maxCapacity: 60, algorithms: ['TOKEN_BUCKET'] as const } },
    { cachedRejections: false, choice: { maxCapacity: 60, algorithms: ['FIXED_WINDOW'] as const } },
  ])(`have the same results as one by one (%j; seed ${seed})`, async ({ cachedRejections, choice }) => {
    for (let history = 0; history < 25; history++) {
      const random = seededRandom(seed + history)
      const clock = manualClock(startMs)
      const [store, model] = [open({ clock, cachedRejections }), memoryStore({ clock })]
      const groups = ['one', 'two'].map((id) =>
        group(
          id,
          (history % 2 === 0 ? ['a'] : ['a', 'b']).map((label) => randomBand(random, label, choice)),
        ),
      )
      for (let turn = 0; turn < 8; turn++) {
        const clockStep = randomPause(random, (groups[0] as (typeof groups)[0]).bands[0] as never)
        clock.advance(Math.max(0, clockStep) / 1000)
        const pairs: [unknown, Promise<unknown>][] = []
        for (let i = 0; i < 30; i++) {
          const demands = randomCharges(random, groups, ['alice', 'bob'])
          const [first] = demands as [Charge]
          const kind = random()
          // Each store is asked in this very turn; the one in memory has answered before the next is asked.
          if (kind < 0.1) pairs.push([await model.reset(first.group, first.key), store.reset(first.group, first.key)])
          else if (kind < 0.25) pairs.push([await model.refund(demands), store.refund(demands)])
          else {
            const peek = kind < 0.4
            const expected = copyResult(demands, model.chargeSync(demands, peek))
            const answer = store.charge(demands, peek).then((actual) => copyResult(demands, actual))
            if (cachedRejections) pairs.push([expected.granted, answer.then(({ granted }) => granted)])
            else pairs.push([expected, answer])
          }
        }
        for (const [i, [expected, actual]] of pairs.entries())
          expect(await actual, `seed ${seed + history}, turn ${turn}, ${i}`).toEqual(expected)
      }
    }
  })
})

describe('a closed store', () => {
  it.each([0, 1])('waits for earlier calls, after %i calls that had to be split', async (divided) => {
    const events: string[] = []
    const connection = connectionOf(client)
    let failures = divided
    const buckets = new RedisBuckets(
      {
        ...connection,
        async call(key, command, asBytes) {
          // As a cluster replies while a slot is moving.
          if (failures-- > 0) throw new Error('TRYAGAIN Multiple keys request during rehashing of slot')
          const reply = await connection.call(key, command, asBytes)
          events.push('answered')
          return reply
        },
        close: async () => void events.push('closed'),
      },
      { prefix: freshPrefix() },
    )
    const two = [chargeOf(rule, 'a'), chargeOf(rule, 'b')]
    expect(granted(await ask(buckets, two))).toEqual([true, true])
    events.length = 0
    const asked = ask(buckets, two)
    await buckets.close()
    await asked
    expect(events).toEqual(['answered', 'closed'])
  })
})

describe('a server that has lost the script', () => {
  it('receives it once, and every decision is made exactly once', async () => {
    const store = open({ cachedRejections: false })
    for (let round = 0; round < 3; round++) {
      const hundred = group(`rule${round}`, [band({ capacity: 100, windowTicks: 60 * second })])
      await server.call('SCRIPT', 'FLUSH')
      let results: readonly { granted: boolean }[] = []
      const counts = await countCalls(server, ['eval', 'evalsha'], async () => {
        results = await ask(store, Array(1_000).fill(chargeOf(hundred, 'a')))
      })
      // Eight calls find it missing; the first sends the text, and the others are retried.
      expect(counts).toEqual({ eval: 1, evalsha: 15 })
      expect(granted(results)).toEqual([...Array(100).fill(true), ...Array(900).fill(false)])
    }
  })

  it('during decisions receives it once per loss', async () => {
    const store = open({ cachedRejections: false })
    const some = group('some', [band({ capacity: 1_000, windowTicks: 3_600 * second })])
    const flushes = 20
    const results: Promise<{ granted: boolean }>[] = []
    const counts = await countCalls(server, ['eval'], async () => {
      for (let i = 0; i < flushes; i++) {
        const flushed = server.call('SCRIPT', 'FLUSH')
        for (let turn = 0; turn < 10; turn++) {
          for (let j = 0; j < 10; j++) results.push(store.charge([chargeOf(some, 'a')], false))
          await new Promise((resolve) => setImmediate(resolve))
        }
        await flushed
      }
      await Promise.all(results)
    })
    expect(counts.eval).toBeLessThanOrEqual(flushes)
    expect(granted(await Promise.all(results)).filter(Boolean)).toHaveLength(1_000)
  })

  it('because it was restarted receives it once', async () => {
    const own = await startRedis()
    const other = new Redis(own.uri)
    other.on('error', () => {})
    try {
      const store = redisStore(other, { clock: manualClock(startMs), cachedRejections: false, timeoutMs: 20_000 })
      await ask(store, [chargeOf(rule, 'a')])
      await own.restart()
      const results = await ask(store, Array(1_000).fill(chargeOf(rule, 'a')))
      expect(granted(results).filter(Boolean)).toHaveLength(5)
      expect(await countCalls(own, ['eval'], () => ask(store, [chargeOf(rule, 'b')]))).toEqual({ eval: 0 })
      expect((await commandCounts(own)).eval).toBe(1)
    } finally {
      other.disconnect()
      await own.stop()
    }
  })
})
