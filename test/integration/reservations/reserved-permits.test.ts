/** The open reservations of a bucket, as `gate.look` reports them: in memory and in Redis. */
import { expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const limit = (id: string, algorithm: string, capacity: number, fields: object = {}) => ({
  ...{ id, limitScope: 'API_KEY', cost: 'tokens', overrides: true, algorithm },
  bands: [
    { label: 'day', capacity, window: '1d' },
    { label: 'minute', capacity: capacity / 2, window: '1m' },
  ],
  ...fields,
})
const rulesWith = (capacity: number) =>
  ({
    id: 'llm',
    rules: [
      limit('bucket', 'TOKEN_BUCKET', capacity),
      limit('window', 'FIXED_WINDOW', capacity),
      limit('counter', 'SLIDING_WINDOW_COUNTER', capacity),
      limit('log', 'SLIDING_WINDOW_LOG', capacity),
      limit('scaled', 'TOKEN_BUCKET', capacity, { onRuleChange: 'SCALE' }),
    ],
  }) as RuleSetInput
const ruleIds = ['bucket', 'window', 'counter', 'log', 'scaled']

async function openGate(store: BucketStore, clock: Clock, capacity: number) {
  const gate = await createFluxGate({ rules: rulesWith(capacity), store, clock })
  onTestFinished(() => gate.close())
  return {
    gate,
    reserved: async (ruleId: string, key = 'k') =>
      (await gate.look({ ruleSetId: 'llm', ruleId, key })).map(({ label, reserved }) => [label, reserved]),
  }
}

const stores = {
  memory: (clock: Clock) => memoryStore({ clock }),
  Redis: (clock: Clock) => redisStore(sharedRedis().uri, { prefix: freshPrefix(), clock, timeoutMs: 20_000 }),
}

it.each(['memory', 'Redis'] as const)('are counted until they are settled or have expired (%s)', async (name) => {
  const clock = manualClock(Date.UTC(2026, 10, 19, 12))
  const store = stores[name](clock)
  onTestFinished(() => store.close())
  const { gate, reserved } = await openGate(store, clock, 1_000)
  const none = undefined
  expect(await reserved('log')).toEqual([
    ['day', none],
    ['minute', none],
  ])
  const reserve = (tokens: number, ttlMs: number, onExpire: 'KEEP' | 'REFUND') =>
    gate.reserve({ apiKey: 'k' }, { costs: { tokens }, ttlMs, onExpire })
  const { id } = await reserve(300, 3_600_000, 'KEEP')
  await reserve(100, 20_000, 'KEEP')
  await reserve(40, 10_000, 'REFUND')
  for (const ruleId of ruleIds)
    expect(await reserved(ruleId), ruleId).toEqual([
      ['day', { reservations: 3, permits: 440 }],
      ['minute', { reservations: 3, permits: 440 }],
    ])
  clock.advance(10_000)
  for (const ruleId of ruleIds)
    expect((await reserved(ruleId))[0], ruleId).toEqual(['day', { reservations: 2, permits: 400 }])
  clock.advance(10_000)
  for (const ruleId of ruleIds)
    expect((await reserved(ruleId))[0], ruleId).toEqual(['day', { reservations: 1, permits: 300 }])
  await gate.settle(id, { costs: { tokens: 1 } })
  for (const ruleId of ruleIds) expect((await reserved(ruleId))[0], ruleId).toEqual(['day', none])
})

it.each(['memory', 'Redis'] as const)('belong to the bucket of an override (%s)', async (name) => {
  const clock = manualClock(Date.UTC(2026, 10, 19, 12))
  const store = stores[name](clock)
  onTestFinished(() => store.close())
  const { gate, reserved } = await openGate(store, clock, 1_000)
  const bands = [{ label: 'hour', capacity: 500, window: '1h' }]
  await gate.overrides?.put('llm', 'bucket', { key: 'k', action: 'LIMIT', bands })
  await gate.overrides?.put('llm', 'log', { key: 'k', action: 'ALLOW' })
  await gate.reserve({ apiKey: 'k' }, { costs: { tokens: 70 }, ttlMs: 60_000 })
  expect(await reserved('bucket')).toEqual([['hour', { reservations: 1, permits: 70 }]])
  expect(await reserved('log')).toEqual([])
  await gate.overrides?.delete('llm', 'bucket', 'k')
  expect((await reserved('bucket'))[0]).toEqual(['day', undefined])
})

const seed = randomSeed()
it(`are the same in memory and in Redis, over random histories and a rule change (seed ${seed})`, async () => {
  const random = seededRandom(seed)
  const clock = manualClock(Date.UTC(2026, 10, 19, 12))
  const opened = [stores.memory(clock), stores.Redis(clock)]
  onTestFinished(() => Promise.all(opened.map((store) => store.close())).then(() => {}))
  let most = 0
  for (const capacity of [5_000, 7_000]) {
    const gates = await Promise.all(opened.map((store) => openGate(store, clock, capacity)))
    const ids: string[] = []
    // More entries than a short log has.
    for (let step = 0; step < 150; step++) {
      clock.advance(Math.floor(random() ** 4 * 6_000))
      const id = `${capacity}-${step}`
      const context = { apiKey: 'k' }
      const kind = random()
      const options = {
        ...{ id, costs: { tokens: 1 + Math.floor(random() * 30) } },
        ttlMs: 1 + Math.floor(random() * 90_000),
        onExpire: random() < 0.5 ? ('KEEP' as const) : ('REFUND' as const),
      }
      const ended = ids[Math.floor(random() * ids.length)] ?? 'none'
      for (const { gate } of gates)
        if (kind < 0.5) await gate.reserve(context, options)
        else if (kind < 0.7) await gate.cancel(ended).catch(() => {})
        else await gate.check(context, { costs: options.costs })
      if (kind < 0.5) ids.push(id)
      for (const ruleId of ruleIds) {
        const [inMemory, inRedis] = await Promise.all(gates.map(({ reserved }) => reserved(ruleId)))
        expect(inRedis, `${ruleId}, step ${step}`).toEqual(inMemory)
        for (const [, open] of inMemory as [string, { reservations: number } | undefined][])
          most = Math.max(most, open?.reservations ?? 0)
      }
    }
  }
  expect(most).toBeGreaterThan(10)
})
