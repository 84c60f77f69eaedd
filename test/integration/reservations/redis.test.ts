/** Reservations in Redis through gates: between processes, with overrides, after crashes and while Redis fails. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Clock } from '../../../src/core/clock.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { eventually } from '../../fixtures/eventually.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const server = await ownRedis()
const client = clientOf(server)

const limit = (id: string, capacity: number, fields: object = {}) => ({
  ...{ id, limitScope: 'API_KEY' as const, overrides: true, bands: [{ capacity, window: '1d' }] },
  ...fields,
})
const rules = {
  id: 'llm',
  rules: [
    limit('requests', 60, { algorithm: 'FIXED_WINDOW' }),
    limit('tokens', 1_000, { cost: 'tokens', algorithm: 'SLIDING_WINDOW_LOG' }),
    limit('day', 100_000, {
      cost: 'tokens',
      overrides: false,
      bands: [{ algorithm: 'FIXED_WINDOW', capacity: 100_000, calendar: 'DAY' }],
    }),
  ],
} as RuleSetInput
const context = { apiKey: 'k' }
const ttlMs = 60_000

interface GateOptions {
  readonly prefix?: string
  readonly clock?: Clock
  readonly timeoutMs?: number
  readonly onStoreFailure?: 'LOCAL' | 'ALLOW' | 'DENY'
}

/** A gate with its own store, like another process. */
async function openGate({ prefix = freshPrefix(), clock, timeoutMs = 20_000, onStoreFailure = 'LOCAL' }: GateOptions) {
  const store = redisStore(client, { prefix, timeoutMs, openMs: 50, ...(clock && { clock }) })
  const gate = await createFluxGate({ rules, store, onStoreFailure, ...(clock && { clock }) })
  onTestFinished(() => gate.close().then(() => store.close()))
  return gate
}

const remaining = async (gate: FluxGate): Promise<Record<string, number>> => {
  const { bands } = await gate.check(context, { permits: 0, costs: { tokens: 0 } })
  return Object.fromEntries(bands.map((band) => [band.ruleId, band.remaining]))
}

it('are made by one process, and repeated and settled by others', async () => {
  const prefix = freshPrefix()
  const [one, other] = [await openGate({ prefix }), await openGate({ prefix })]
  const options = { costs: { tokens: 600 }, ttlMs, id: 'job {7}: ключ' }
  const first = await one.reserve(context, options)
  expect(await other.reserve(context, options)).toEqual(first)
  expect(await remaining(other)).toEqual({ requests: 59, tokens: 400, day: 99_400 })
  const settled = await other.settle(options.id, { costs: { tokens: 150 } })
  expect(await one.settle(options.id, { costs: { tokens: 900 } })).toEqual(settled)
  expect(await one.cancel(options.id)).toEqual(settled)
  expect(await remaining(one)).toEqual({ requests: 59, tokens: 850, day: 99_850 })
})

it('give the same results as in memory', async () => {
  const clock = manualClock(1_800_000_000_000)
  const inRedis = await openGate({ clock })
  const inMemory = await createFluxGate({ rules, store: memoryStore({ clock }), clock })
  onTestFinished(() => inMemory.close())
  for (const [tokens, actual] of [
    [700, 100],
    [200, 950],
    [1, 1],
    [5_000, 0],
  ] as const) {
    const [one, other] = await Promise.all(
      [inRedis, inMemory].map((gate) => gate.reserve(context, { costs: { tokens }, ttlMs, id: `of-${tokens}` })),
    )
    expect(one).toEqual(other)
    clock.advance(1_234.5)
    const [ended, otherEnded] = await Promise.allSettled(
      [inRedis, inMemory].map((gate) => gate.settle(`of-${tokens}`, { costs: { tokens: actual } })),
    )
    expect(ended).toEqual(otherEnded)
  }
})

it('write only keys that expire', async () => {
  const prefix = freshPrefix()
  const gate = await openGate({ prefix })
  const ids = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const { id } = await gate.reserve({ apiKey: `k${i % 3}` }, { costs: { tokens: 5 }, ttlMs, onExpire: 'REFUND' })
      return id
    }),
  )
  await Promise.all(ids.slice(10).map((id) => gate.settle(id, { costs: { tokens: 9 } })))
  const keys = (await client.keys(`${prefix}*`)).filter((key) => !key.includes('generations'))
  expect(keys.filter((key) => key.endsWith(':reservation'))).toHaveLength(20)
  for (const key of keys) {
    const ttl = await client.pttl(key)
    expect(ttl, key).toBeGreaterThan(0)
    if (key.endsWith(':reservation')) expect(ttl).toBeLessThanOrEqual(ttlMs + 60_000)
  }
})

it('refund the buckets of an override that has been removed since', async () => {
  const gate = await openGate({})
  const override = { key: 'k', action: 'LIMIT', bands: [{ algorithm: 'FIXED_WINDOW', capacity: 500, window: '1d' }] }
  await gate.overrides?.put('llm', 'tokens', override)
  await gate.overrides?.put('llm', 'requests', { key: 'k', action: 'ALLOW' })
  const { decision, id } = await gate.reserve(context, { costs: { tokens: 400 }, ttlMs })
  expect(decision).toMatchObject({ allowed: true, ruleId: 'tokens', limit: 500, remaining: 100 })
  await gate.overrides?.delete('llm', 'tokens', 'k')
  expect(await remaining(gate)).toMatchObject({ tokens: 1_000 })
  const { decision: after } = await gate.settle(id, { costs: { tokens: 50 } })
  expect(after).toMatchObject({ ruleId: 'tokens', limit: 500, remaining: 450 })
  await gate.overrides?.put('llm', 'tokens', override)
  expect(await remaining(gate)).toMatchObject({ tokens: 450 })
})

it('are refunded at the end of their time although their process has crashed', async () => {
  const prefix = freshPrefix()
  const clock = manualClock(1_800_000_000_000)
  const crashed = await openGate({ prefix, clock })
  const { id } = await crashed.reserve(context, { costs: { tokens: 400 }, ttlMs: 10_000, onExpire: 'REFUND' })
  await crashed.reserve(context, { costs: { tokens: 300 }, ttlMs: 10_000 })
  const gate = await openGate({ prefix, clock })
  clock.advance(9_999)
  expect(await remaining(gate)).toEqual({ requests: 58, tokens: 300, day: 99_300 })
  expect(await gate.check(context, { costs: { tokens: 301 } })).toMatchObject({ allowed: false, ruleId: 'tokens' })
  clock.advance(1)
  expect(await remaining(gate)).toEqual({ requests: 59, tokens: 700, day: 99_700 })
  expect(await gate.check(context, { costs: { tokens: 301 } })).toMatchObject({ allowed: true })
  await expect(gate.settle(id)).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_EXPIRED' })
  clock.advance(60_000)
  await expect(gate.settle(id)).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_UNKNOWN' })
})

it('never take a key that another program has written for a reservation', async () => {
  const prefix = freshPrefix()
  const gate = await openGate({ prefix, onStoreFailure: 'DENY' })
  const key = `${prefix}:{job}:reservation`
  for (const write of [
    () => client.lpush(key, 'x'),
    () => client.set(key, 'x'),
    () => client.set(key, 'x'.repeat(99)),
  ]) {
    await client.del(key)
    await write()
    const { decision } = await gate.reserve(context, { ttlMs, id: 'job' })
    expect(decision).toMatchObject({ allowed: false, reason: 'STORE_FAILURE' })
    await expect(gate.settle('job')).rejects.toMatchObject({ code: expect.stringMatching(/^FLUXGATE_(STORE|BUCKET)_/) })
  }
  expect(await remaining(gate)).toEqual({ requests: 60, tokens: 1_000, day: 100_000 })
})

describe('while Redis hangs', () => {
  const whilePaused = async <T>(work: () => Promise<T>): Promise<T> => {
    server.pause()
    try {
      return await work()
    } finally {
      server.resume()
    }
  }

  it('are made and settled in this process with LOCAL', async () => {
    const gate = await openGate({ timeoutMs: 200 })
    await remaining(gate)
    await whilePaused(async () => {
      const options = { costs: { tokens: 600 }, ttlMs, id: 'job' }
      const reservation = await gate.reserve(context, options)
      expect(reservation.decision).toMatchObject({ allowed: true, degraded: true })
      const { bands } = reservation.decision
      expect(await gate.reserve(context, options)).toMatchObject({ id: 'job', decision: { degraded: true, bands } })
      const settled = await gate.settle('job', { costs: { tokens: 100 } })
      expect(settled).toMatchObject({ status: 'SETTLED', decision: { degraded: true } })
      expect(await gate.cancel('job')).toEqual(settled)
      expect(await gate.check(context, { permits: 0, costs: { tokens: 0 } })).toMatchObject({
        degraded: true,
        bands: [{ remaining: 99_900 }, { remaining: 59 }, { remaining: 900 }],
      })
    })
  })

  it('are canceled if Redis executes the call after its timeout, and no caller knows the id', async () => {
    const prefix = freshPrefix()
    const gate = await openGate({ prefix, timeoutMs: 200, onStoreFailure: 'DENY' })
    const patient = await openGate({ prefix })
    await remaining(patient)
    const { decision } = await whilePaused(() => gate.reserve(context, { costs: { tokens: 600 }, ttlMs }))
    expect(decision).toMatchObject({ allowed: false, degraded: true })
    await eventually(
      'the record of the reservation',
      async () => (await client.keys(`${prefix}*:reservation`)).length === 1,
    )
    await eventually('nothing is charged', async () => (await remaining(patient)).tokens === 1_000)
  })

  it('are charged once if the call with an id of its own is repeated', async () => {
    const prefix = freshPrefix()
    const gate = await openGate({ prefix, timeoutMs: 200, onStoreFailure: 'DENY' })
    const patient = await openGate({ prefix })
    await remaining(patient)
    const options = { costs: { tokens: 600 }, ttlMs, id: 'job' }
    const { decision } = await whilePaused(() => gate.reserve(context, options))
    expect(decision).toMatchObject({ allowed: false, reason: 'STORE_FAILURE', degraded: true })
    const repeated = await patient.reserve(context, options)
    expect(repeated.decision).toMatchObject({ allowed: true, degraded: false })
    await patient.settle('job', { costs: { tokens: 250 } })
    expect(await remaining(patient)).toEqual({ requests: 59, tokens: 750, day: 99_750 })
  })

  it('reject a settlement with the error of the store, and it can be repeated', async () => {
    const prefix = freshPrefix()
    const gate = await openGate({ prefix, timeoutMs: 200 })
    const patient = await openGate({ prefix })
    // A reservation that `gate` has made in this process, because Redis was slow, would be settled in this process.
    const { id } = await patient.reserve(context, { costs: { tokens: 600 }, ttlMs })
    await eventually('Redis decides', async () => !(await gate.check(context, { peek: true })).degraded)
    await whilePaused(() =>
      expect(gate.settle(id, { costs: { tokens: 250 } })).rejects.toMatchObject({ code: 'FLUXGATE_STORE_TIMEOUT' }),
    )
    expect(await patient.settle(id, { costs: { tokens: 250 } })).toMatchObject({ status: 'SETTLED' })
    expect(await remaining(patient)).toEqual({ requests: 59, tokens: 750, day: 99_750 })
  })
})
