/** A store on a cluster: the same contract for decisions in one slot, and all or nothing for decisions in several. */
import { Cluster as IoredisCluster } from 'ioredis'
import { createCluster } from 'redis'
import { createCluster as createCluster4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BucketStore, type Charge, copyResult } from '../../../src/core/bucket-store.js'
import { refundsOf } from '../../../src/core/decision/rate-limiter.js'
import type { Band } from '../../../src/core/rule.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { hashSlot } from '../../../src/redis/client/hash-slot.js'
import { type RedisStoreOptions, redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { referenceStore } from '../../../src/testing/models/reference-store.js'
import { randomBand, randomCharges, randomPause } from '../../../src/testing/random-charges.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { redisKeyOf } from '../../fixtures/redis-key-of.js'
import { inOneSlot } from '../../fixtures/same-slot.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { freshPrefix } from '../../servers/shared-redis.js'
import { contractAndHistories } from './histories.js'

let cluster: Cluster
let ioredis: IoredisCluster
let nodeRedis: ReturnType<typeof createCluster>
let nodeRedis4: ReturnType<typeof createCluster4>
beforeAll(async () => {
  cluster = await startCluster()
  ioredis = new IoredisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
  const rootNodes = cluster.nodes.map(({ uri }) => ({ url: uri }))
  nodeRedis = createCluster({ rootNodes })
  nodeRedis4 = createCluster4({ rootNodes })
  for (const client of [nodeRedis, nodeRedis4]) {
    client.on('error', () => {})
    await client.connect()
  }
})
afterAll(async () => {
  ioredis.disconnect()
  nodeRedis.destroy()
  await nodeRedis4.disconnect()
  await cluster.stop()
})

const seed = randomSeed()
const settings = { timeoutMs: 20_000 }

describe('decisions in one slot', () => {
  describe('over ioredis', () =>
    contractAndHistories(it, (clock) => inOneSlot(redisStore(ioredis, { ...settings, prefix: freshPrefix(), clock })), {
      histories: 100,
      seed: seed + 8_000,
    }))

  describe('over node-redis, without cached rejections', () =>
    contractAndHistories(
      it,
      (clock) =>
        inOneSlot(redisStore(nodeRedis, { ...settings, prefix: freshPrefix(), clock, cachedRejections: false })),
      { histories: 80, seed: seed + 9_000 },
    ))

  describe('over node-redis 4', () =>
    contractAndHistories(
      it,
      (clock) => inOneSlot(redisStore(nodeRedis4, { ...settings, prefix: freshPrefix(), clock })),
      { histories: 40, seed: seed + 11_000 },
    ))

  describe('over a connection opened by FluxGate', () =>
    contractAndHistories(
      it,
      async (clock) => {
        const where = { clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) }
        const store = redisStore(where, { ...settings, prefix: freshPrefix(), clock })
        await store.ready(5_000)
        return { ...inOneSlot(store), close: () => store.close() }
      },
      { histories: 20, seed: seed + 10_000 },
    ))
})

/** Each key is in a different slot, on a different node. */
const identities = ['alice', 'bob', 'carol'] as const

describe('decisions in several slots', () => {
  const open = (options: RedisStoreOptions = {}) =>
    redisStore(ioredis, {
      ...settings,
      prefix: freshPrefix(),
      clock: manualClock(startMs),
      cachedRejections: false,
      ...options,
    })
  const remaining = async (store: BucketStore, one: Charge): Promise<number | undefined> =>
    (await store.charge([{ ...one, permits: 0 }], true)).bands[0]?.remaining

  it('use slots on several nodes', async () => {
    const nodes = await Promise.all(identities.map((key) => cluster.primaryOf(hashSlot(key))))
    expect(new Set(nodes.map(({ port }) => port)).size).toBeGreaterThan(1)
  })

  it('charge every slot or none: partial charges are refunded', async () => {
    const store = open()
    const loose = chargeOf(group('loose', [band({ capacity: 10 }), band({ label: 'more', capacity: 20 })]), 'alice')
    const tight = chargeOf(group('tight', [band({ capacity: 1 })]), 'bob')
    const results = []
    for (let i = 0; i < 5; i++) results.push(await store.charge([loose, tight], false))
    expect(results.map(({ granted }) => granted)).toEqual([true, false, false, false, false])
    // In the order of the charges, and for a rejection the current state of the bands.
    expect(results[0]?.bands.map(({ remaining }) => remaining)).toEqual([9, 19, 0])
    expect(results[4]?.bands.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 9],
      [true, 19],
      [false, 0],
    ])
    expect(await remaining(store, loose)).toBe(9)
  })

  it('peek without charging anything anywhere', async () => {
    const store = open()
    const [one, two] = [chargeOf(group('a', [band()]), 'alice'), chargeOf(group('b', [band({ capacity: 1 })]), 'bob')]
    expect((await store.charge([one, two], true)).bands.map(({ remaining }) => remaining)).toEqual([9, 0])
    await store.charge([two], false)
    expect((await store.charge([one, two], true)).bands.map(({ remaining }) => remaining)).toEqual([10, 0])
    expect(await remaining(store, one)).toBe(10)
  })

  it('are not rejected by a shadow rule, which is charged only with all the others', async () => {
    const store = open()
    const shadow = chargeOf(group('shadow', [band({ capacity: 2 })]), 'carol', { shadow: true })
    const rule = chargeOf(group('rule', [band({ capacity: 3 })]), 'alice')
    const verdicts = []
    for (let i = 0; i < 3; i++)
      verdicts.push((await store.charge([shadow, rule], false)).bands.map(({ allowed }) => allowed))
    expect(verdicts).toEqual([
      [true, true],
      [true, true],
      [false, true],
    ])
    await store.reset(shadow.group, 'carol')
    expect((await store.charge([shadow, rule], false)).granted).toBe(false)
    expect(await remaining(store, shadow)).toBe(2)
  })

  it('charge nothing if one slot cannot be decided', async () => {
    const prefix = freshPrefix()
    const store = open({ prefix })
    const [fine, broken] = [chargeOf(group('fine', [band()]), 'alice'), chargeOf(group('broken', [band()]), 'bob')]
    await ioredis.set(redisKeyOf(prefix, broken.group, 'bob'), 'garbage', 'PX', 60_000)
    await expect(store.charge([fine, broken], false)).rejects.toMatchObject({ code: 'FLUXGATE_BUCKET_INVALID' })
    expect(await remaining(store, fine)).toBe(10)
  })

  it(`have the same results as on one server, field by field, one after another (seed ${seed})`, async () => {
    for (let history = 0; history < 25; history++) {
      const random = seededRandom(seed + history)
      const clock = manualClock(startMs)
      const [store, model] = [open({ clock, cachedRejections: history % 2 === 0 }), referenceStore({ clock })]
      const groups = ['one', 'two', 'three'].map((id) =>
        group(
          id,
          ['a', 'b'].map((label) => randomBand(random, label, { maxCapacity: history % 3 === 0 ? 1e9 : 10 })),
        ),
      )
      let granted: ReturnType<typeof refundsOf> = []
      for (let step = 0; step < 60; step++) {
        clock.advance(Math.max(0, randomPause(random, groups[0]?.bands[0] as Band)) / 1000)
        // A queue slot that is released too late stays empty, so no request waits here.
        const demands = randomCharges(random, groups, identities).map((one) => ({ ...one, maxWaitTicks: 0 }))
        const [first] = demands as [Charge]
        const kind = random()
        if (kind < 0.05) for (const one of [store, model]) await one.reset(first.group, first.key)
        else if (kind < 0.15) for (const one of [store, model]) await one.refund(granted)
        else {
          const peek = kind < 0.25
          const [actual, expected] = [await store.charge(demands, peek), await model.charge(demands, peek)]
          expect(copyResult(demands, actual), `seed ${seed + history}, step ${step}`).toEqual(expected)
          if (actual.granted && !peek) granted = refundsOf(demands, actual)
        }
      }
    }
  })

  it(`never admit too much when hundreds of them run concurrently (seed ${seed})`, async () => {
    const random = seededRandom(seed)
    const store = open()
    const rules = identities.map((key, i) =>
      chargeOf(group(`rule${i}`, [band({ capacity: 20 + 10 * i, windowTicks: 3_600 * second })]), key),
    )
    const decisions = Array.from({ length: 200 }, () => {
      const chosen = rules.filter(() => random() < 0.6)
      const demands = chosen.length > 0 ? chosen : rules
      return demands.map((one) => ({ ...one, permits: 1 + Math.floor(random() * 2), shadow: random() < 0.1 }))
    })
    const results = await Promise.all(decisions.map((demands) => store.charge(demands, false)))
    for (const [i, rule] of rules.entries()) {
      let charged = 0
      for (const [index, demands] of decisions.entries()) {
        const place = demands.findIndex(({ key }) => key === rule.key)
        const { granted = false, bands = [] } = results[index] ?? {}
        if (granted && bands[place]?.allowed) charged += demands[place]?.permits ?? 0
      }
      expect(charged).toBeGreaterThan(0)
      expect(charged).toBeLessThanOrEqual(20 + 10 * i)
      // Refunds are exact to the permit.
      expect(await remaining(store, rule)).toBe(20 + 10 * i - charged)
    }
  })
})
