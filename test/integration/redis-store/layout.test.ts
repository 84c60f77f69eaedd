/** All bands of a rule and an identity share one small value. */
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type BucketGroup, type BucketStore, copyResult } from '../../../src/core/bucket-store.js'
import { refundsOf } from '../../../src/core/decision/rate-limiter.js'
import { algorithmNames, type Band } from '../../../src/core/rule.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { referenceStore } from '../../../src/testing/models/reference-store.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { redisKeyOf } from '../../fixtures/redis-key-of.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const rateAlgorithms = algorithmNames.filter((name) => name !== 'CONCURRENCY')

const server = await ownRedis()
const client = clientOf(server)

const hour = 3_600 * second
const kinds: [Band['algorithm'], Band['refill']][] = [
  ...rateAlgorithms.map((name): [Band['algorithm'], 'STEADY'] => [name, 'STEADY']),
  ['TOKEN_BUCKET', 'INTERVAL'],
]

describe('the memory of a key', () => {
  it.each(kinds)('%s %s: is at most 110 bytes with one band', async (algorithm, refill) => {
    await server.call('FLUSHALL', 'SYNC')
    const store = redisStore(client, { cachedRejections: false, timeoutMs: 20_000 })
    const isLog = algorithm === 'SLIDING_WINDOW_LOG'
    const limit = { capacity: isLog ? 100_000 : 1_000_000_000, windowTicks: 366 * 24 * hour }
    const rule = group('rule', [band({ algorithm, refill, ...limit })])
    const charge = chargeOf(rule, '203.0.113.7', { permits: 50_000 })
    await store.charge([charge], false)
    // A log has one entry. The others are charged several times, in one call and in calls of their own.
    for (let i = 0; i < (isLog ? 0 : 5); i++)
      await Promise.all([store.charge([charge], false), store.charge([charge], false)])
    const keys = await client.keys('*')
    expect(keys).toEqual([redisKeyOf('fluxgate', rule, '203.0.113.7')])
    expect(Number(await server.call('MEMORY', 'USAGE', keys[0] as string))).toBeLessThanOrEqual(110)
  })

  it('is one key and 28 bytes of value per further band', async () => {
    const prefix = freshPrefix()
    const store = redisStore(client, { prefix, timeoutMs: 20_000 })
    const bands = kinds.map(([algorithm, refill], i) => band({ label: `b${i}`, algorithm, refill, windowTicks: hour }))
    await store.charge([chargeOf(group('rule', bands), 'a')], false)
    const keys = await client.keys(`${prefix}*`)
    expect(keys).toHaveLength(1)
    // The log has one entry, which takes 22 bytes with its header.
    expect(await client.strlen(keys[0] as string)).toBe(5 * 28 + 22)
  })
})

describe('the buckets of an edited rule that are kept', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((label, i) => band({ label, capacity: 10 + i, windowTicks: hour }))
  const [bandA, bandB, bandC] = [a as Band, b as Band, c as Band]
  const log = band({ label: 'log', algorithm: 'SLIDING_WINDOW_LOG', capacity: 100, windowTicks: hour })
  const left = async (store: BucketStore, ...bands: Band[]) =>
    (await store.charge([chargeOf(group('rule', bands), 'x', { permits: 0 })], true)).bands.map((one) => one.remaining)
  const take = (store: BucketStore, ...bands: Band[]) => store.charge([chargeOf(group('rule', bands), 'x')], false)
  const open = () =>
    redisStore(client, {
      prefix: freshPrefix(),
      clock: manualClock(startMs),
      cachedRejections: false,
      timeoutMs: 20_000,
    })

  it('are those with the same label, when bands are added, removed and reordered', async () => {
    const store = open()
    await take(store, bandA, bandB)
    expect(await left(store, bandB, bandA)).toEqual([10, 9])
    await take(store, bandB, bandC, bandA)
    expect(await left(store, bandA, bandB, bandC)).toEqual([8, 9, 11])
    await take(store, bandC)
    expect(await left(store, bandC, log, bandA)).toEqual([10, 100, 8])
    await take(store, log, bandC)
    expect(await left(store, bandB, log)).toEqual([9, 99])
  })

  it('stay exact while processes with two versions of the rule alternate', async () => {
    const store = open()
    const [before, after] = [
      [bandA, bandB],
      [bandC, bandA],
    ]
    for (let i = 0; i < 4; i++) {
      await take(store, ...(before as Band[]))
      await take(store, ...(after as Band[]))
    }
    await Promise.all([take(store, ...(before as Band[])), take(store, ...(after as Band[]))])
    expect(await left(store, bandA, bandB, bandC)).toEqual([0, 6, 7])
  })

  it('include a long log that another version of the rule does not have', async () => {
    const clock = manualClock(startMs)
    const store = redisStore(client, { prefix: freshPrefix(), clock, cachedRejections: false, timeoutMs: 20_000 })
    const many = band({ label: 'many', capacity: 1_000, windowTicks: hour })
    for (let i = 0; i < 60; i++) {
      clock.advance(1)
      await take(store, log, many)
      await take(store, many)
    }
    expect(await left(store, many, log)).toEqual([880, 40])
  })

  it('are bounded in number', async () => {
    const prefix = freshPrefix()
    const store = redisStore(client, {
      prefix,
      clock: manualClock(startMs),
      cachedRejections: false,
      timeoutMs: 20_000,
    })
    for (let i = 0; i < 100; i++) await take(store, band({ label: `version ${i}`, windowTicks: hour }))
    const [name = ''] = await client.keys(`${prefix}*`)
    expect(await client.strlen(name)).toBe(24 * 28)
    expect(await left(store, band({ label: 'version 99', windowTicks: hour }))).toEqual([9])
  })
})

describe('two rules with the same abbreviation', () => {
  /** Equal for both rules in the part that abbreviates them, and as usual otherwise. */
  const colliding = (text: string): Buffer =>
    createHash('sha256')
      .update((JSON.parse(text) as string[]).length === 3 ? 'same' : text)
      .digest()
  const open = (prefix: string) =>
    new RedisBuckets(connectionOf(client), { prefix, clock: manualClock(startMs), digest: colliding })
  const ruleOf = (id: string, capacity: number, algorithm: Band['algorithm'] = 'TOKEN_BUCKET') =>
    group(id, [
      band({ capacity, algorithm, windowTicks: hour }),
      band({ label: 'second', capacity, windowTicks: hour }),
    ])

  it.each(rateAlgorithms)('%s: have buckets of their own in the shared key', async (algorithm) => {
    const prefix = freshPrefix()
    const store = open(prefix)
    const [one, two] = [ruleOf('one', 5), ruleOf('two', 8, algorithm)]
    const left = async (rule: BucketGroup) =>
      (await store.charge([chargeOf(rule, 'a', { permits: 0 })], true)).bands.map(({ remaining }) => remaining)
    await store.charge([chargeOf(one, 'a')], false)
    expect(await left(two)).toEqual([8, 8])
    // In one decision, in one call, and in calls of their own.
    await store.charge([chargeOf(one, 'a'), chargeOf(two, 'a')], false)
    await Promise.all([store.charge([chargeOf(one, 'a')], false), store.charge([chargeOf(two, 'a')], false)])
    await store.charge([chargeOf(two, 'a')], false)
    expect(await left(one)).toEqual([2, 2])
    expect(await left(two)).toEqual([5, 5])
    expect(await client.keys(`${prefix}*`)).toHaveLength(1)
    await store.reset(one, 'a')
    expect(await left(one)).toEqual([5, 5])
    expect(await left(two)).toEqual([5, 5])
    await store.reset(two, 'a')
    expect(await client.keys(`${prefix}*`)).toEqual([])
  })

  it('keep the later expiry of both', async () => {
    const prefix = freshPrefix()
    const store = new RedisBuckets(connectionOf(client), { prefix, digest: colliding })
    const short = group('short', [band({ capacity: 10, windowTicks: 60 * second })])
    await store.charge([chargeOf(ruleOf('long', 1), 'a')], false)
    const [name = ''] = await client.keys(`${prefix}*`)
    const expiry = await client.pexpiretime(name)
    await store.charge([chargeOf(short, 'a')], false)
    expect(Math.abs((await client.pexpiretime(name)) - expiry)).toBeLessThanOrEqual(1)
    await store.reset(short, 'a')
    expect(Math.abs((await client.pexpiretime(name)) - expiry)).toBeLessThanOrEqual(2)
  })
})

describe('values beyond the compact form agree with the model', () => {
  const seed = randomSeed()

  it('levels far below zero, when requests wait for very fast refills', async () => {
    const clock = manualClock(startMs)
    const store = redisStore(client, { prefix: freshPrefix(), clock, cachedRejections: false, timeoutMs: 20_000 })
    const model = referenceStore({ clock })
    for (const refill of ['STEADY', 'INTERVAL'] as const) {
      const rule = group(`rule ${refill}`, [band({ refill, capacity: 1e9, windowTicks: 1_000 })])
      const charge = chargeOf(rule, 'a', { permits: 1e9, maxWaitTicks: hour })
      for (let i = 0; i < 1_200; i++) {
        if (i === 1_000) clock.advance(500.5)
        const [actual, expected] = [await store.charge([charge], false), await model.charge([charge], false)]
        if (i % 50 === 0 || i > 1_190) expect(copyResult([charge], actual)).toEqual(expected)
      }
    }
  })

  it(`several long logs alongside other bands, as they grow, expire and are refunded (seed ${seed})`, async () => {
    for (let history = 0; history < 4; history++) {
      const random = seededRandom(seed + history)
      const clock = manualClock(startMs)
      const prefix = freshPrefix()
      const store = redisStore(client, { prefix, clock, cachedRejections: false, timeoutMs: 20_000 })
      const model = referenceStore({ clock })
      const logs = [60, 200, 90].map((seconds, i) =>
        band({ label: `log${i}`, algorithm: 'SLIDING_WINDOW_LOG', capacity: 300, windowTicks: seconds * second }),
      )
      const rule = group('rule', [
        band({ label: 'first', capacity: 100_000, windowTicks: hour }),
        ...logs,
        band({ label: 'last', algorithm: 'FIXED_WINDOW', capacity: 100_000, windowTicks: hour }),
      ])
      let granted: ReturnType<typeof refundsOf> = []
      for (let step = 0; step < 600; step++) {
        const place = `seed ${seed + history}, step ${step}`
        // Phases of growth and of expiry.
        clock.advance(step % 200 < 150 ? Math.floor(random() * 300) + 0.5 : Math.floor(random() * 10_000))
        const charge = chargeOf(rule, 'a', { permits: 1 + Math.floor(random() * 2) })
        if (random() < 0.1) {
          await store.refund(granted)
          await model.refund(granted)
        } else {
          const peek = random() < 0.1
          const [actual, expected] = [await store.charge([charge], peek), await model.charge([charge], peek)]
          expect(copyResult([charge], actual), place).toEqual(expected)
          if (actual.granted && !peek) granted = refundsOf([charge], actual)
        }
      }
      expect(await client.keys(`${prefix}*`)).toHaveLength(1)
    }
  })
})
