/** Reservations in a Redis Cluster whose keys are in several slots. */
import { Cluster as IoredisCluster } from 'ioredis'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import type { Clock } from '../../../src/core/clock.js'
import type { OnExpire, SettledReservation, SettleOptions } from '../../../src/core/reservations/reservation.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import { hashSlot } from '../../../src/redis/client/hash-slot.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { crashingClient } from '../../fixtures/crashing-client.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { freshPrefix } from '../../servers/shared-redis.js'

let cluster: Cluster
let client: IoredisCluster
beforeAll(async () => {
  cluster = await startCluster()
  client = open()
})
afterAll(async () => {
  client.disconnect()
  await cluster.stop()
})

const open = () => new IoredisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))

const bands = [{ algorithm: 'FIXED_WINDOW', capacity: 1_000_000, calendar: 'YEAR' }] as const
const rules: RuleSetInput = {
  id: 'llm',
  rules: [
    { id: 'team', limitScope: 'API_KEY', cost: 'tokens', overrides: true, bands: [...bands] },
    { id: 'user', limitScope: 'USER_ID', cost: 'tokens', bands: [...bands] },
    { id: 'requests', limitScope: 'USER_ID', bands: [{ algorithm: 'FIXED_WINDOW', capacity: 5_000, window: '1d' }] },
    { id: 'all', limitScope: 'GLOBAL', bands: [{ algorithm: 'SLIDING_WINDOW_LOG', capacity: 10_000, window: '1d' }] },
  ],
}
const contexts = ['ann', 'bob', 'cid'].map((userId, i) => ({ userId, apiKey: `team-${i % 2}` }))
const [context] = contexts as [(typeof contexts)[number]]
const ttlMs = 60_000

interface GateOptions {
  readonly prefix: string
  readonly clock?: Clock
  readonly through?: IoredisCluster
}

/** A gate with its own store, like another process. */
async function openGate({ prefix, clock, through = client }: GateOptions): Promise<FluxGate> {
  const store = redisStore(through, { prefix, timeoutMs: 20_000, openMs: 1, ...(clock && { clock }) })
  const gate = await createFluxGate({ rules, store, onStoreFailure: 'DENY', ...(clock && { clock }) })
  onTestFinished(() => gate.close().then(() => store.close()))
  return gate
}

const used = async (gate: FluxGate, of = context): Promise<Record<string, number>> => {
  const { bands } = await gate.check(of, { permits: 0, costs: { tokens: 0 } })
  return Object.fromEntries(bands.map(({ ruleId, limit, remaining }) => [ruleId, limit - remaining]))
}

it('are made by one process, and repeated and settled by others', async () => {
  expect(new Set(['ann', 'team-0', 'job'].map((key) => hashSlot(key))).size).toBe(3)
  const prefix = freshPrefix()
  const [one, other] = [await openGate({ prefix }), await openGate({ prefix })]
  const options = { costs: { tokens: 600 }, ttlMs, id: 'job {7}: ключ' }
  const first = await one.reserve(context, options)
  expect(first.decision).toMatchObject({ allowed: true, degraded: false })
  const [bucket] = await other.look({ ruleSetId: 'llm', ruleId: 'user', key: 'ann' })
  expect(bucket).toMatchObject({ reserved: { reservations: 1, permits: 600 } })
  expect(await other.reserve(contexts[1] as typeof context, options)).toEqual(first)
  expect(await used(other)).toEqual({ team: 600, user: 600, requests: 1, all: 1 })
  const settled = await other.settle(options.id, { costs: { tokens: 150 } })
  expect(await one.settle(options.id, { costs: { tokens: 900 } })).toEqual(settled)
  expect(await other.cancel(options.id)).toEqual(settled)
  expect(await one.reserve(context, options)).toEqual(first)
  expect(await used(one)).toEqual({ team: 150, user: 150, requests: 1, all: 1 })
  await expect(one.settle('job')).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_UNKNOWN' })
})

it.each([undefined, 'job'])('charge no slot if one rejects (id %s)', async (id) => {
  const prefix = freshPrefix()
  const gate = await openGate({ prefix })
  await gate.overrides?.put('llm', 'team', { key: 'team-0', action: 'LIMIT', bands: [{ ...bands[0], capacity: 500 }] })
  const rejected = await gate.reserve(context, { costs: { tokens: 501 }, ttlMs, ...(id && { id }) })
  expect(rejected.decision).toMatchObject({ allowed: false, ruleId: 'team', limit: 500 })
  expect(rejected.decision.bands.map(({ ruleId, remaining }) => [ruleId, remaining])).toEqual([
    ['all', 10_000],
    ['requests', 5_000],
    ['team', 500],
    ['user', 1_000_000],
  ])
  expect(await used(gate)).toEqual({ team: 0, user: 0, requests: 0, all: 0 })
  const again = await gate.reserve(context, { costs: { tokens: 500 }, ttlMs, ...(id && { id }) })
  expect(again.decision).toMatchObject({ allowed: true })
  expect((await gate.settle(again.id, { costs: { tokens: 20 } })).decision).toMatchObject({
    ruleId: 'team',
    remaining: 480,
  })
})

it('are charged once if several processes make the same reservation at the same time', async () => {
  const prefix = freshPrefix()
  const gates = await Promise.all([1, 2, 3].map(() => openGate({ prefix, through: client })))
  for (let round = 0; round < 20; round++) {
    const options = { costs: { tokens: 10 }, ttlMs, id: `round-${round}` }
    const made = await Promise.all([...gates, ...gates].map((gate) => gate.reserve(context, options)))
    for (const one of made) expect(one).toEqual(made[0])
    const settled = await Promise.all(gates.map((gate, i) => gate.settle(options.id, { costs: { tokens: i + 1 } })))
    for (const one of settled) expect(one).toEqual(settled[0])
  }
  const { requests, all, team = 0 } = await used(gates[0] as FluxGate)
  expect([requests, all]).toEqual([20, 20])
  expect(team).toBeGreaterThanOrEqual(20)
  expect(team).toBeLessThanOrEqual(60)
})

it('write only keys that expire', async () => {
  const prefix = freshPrefix()
  const gate = await openGate({ prefix })
  for (let i = 0; i < 20; i++) {
    const { id } = await gate.reserve(contexts[i % 3] as typeof context, { costs: { tokens: 5 }, ttlMs })
    if (i % 2 === 0) await gate.settle(id, { costs: { tokens: 9 } })
  }
  const keys = (await Promise.all(client.nodes('master').map((node) => node.keys(`${prefix}*`)))).flat()
  const records = keys.filter((key) => key.endsWith(':reservation'))
  expect(records.length).toBeGreaterThan(40)
  for (const key of records) {
    const ttl = await client.pttl(key)
    expect(ttl, key).toBeGreaterThan(0)
    expect(ttl, key).toBeLessThanOrEqual(ttlMs + 60_000)
  }
})

const seed = randomSeed()

it(`charge what they cost, although processes crash during calls (seed ${seed})`, async () => {
  const random = seededRandom(seed)
  const clock = manualClock(1_800_000_000_000)
  const prefix = freshPrefix()
  const process = crashingClient(open())
  onTestFinished(() => process.client.disconnect())
  const openProcess = () => openGate({ prefix, clock, through: process.client as IoredisCluster })
  const observer = await openGate({ prefix, clock })
  let gate = await openProcess()
  let crashes = 0
  /** Repeats a call after a crash, in another process, until it succeeds. */
  async function surely<T>(work: () => Promise<T>, isDone: (result: T) => boolean): Promise<T> {
    for (;;) {
      if (random() < 0.4) process.crashSoon(random, 8)
      const result = await work().catch((error) => {
        if (!process.isCrashed) throw error
      })
      if (process.isCrashed) {
        crashes += 1
        process.restart()
        gate = await openProcess()
      } else process.restart()
      if (result !== undefined && isDone(result)) return result
    }
  }
  const expected: Record<string, number> = {}
  const cost = (name: string, amount: number): void => {
    expected[name] = (expected[name] ?? 0) + amount
  }
  const ends: (() => Promise<void>)[] = []
  for (let i = 0; i < 150; i++) {
    const of = contexts[Math.floor(random() * 3)] as typeof context
    const estimate = Math.floor(random() * 1_000)
    const onExpire: OnExpire = random() < 0.5 ? 'KEEP' : 'REFUND'
    const options = { costs: { tokens: estimate }, ttlMs, onExpire, id: `job-${i}` }
    const { decision } = await surely(
      () => gate.reserve(of, options),
      (made) => !made.decision.degraded,
    )
    expect(decision.allowed).toBe(true)
    const actual: SettleOptions | undefined =
      random() < 0.7
        ? { permits: Math.floor(random() * 3), costs: { tokens: Math.floor(random() * 2_000) } }
        : undefined
    const isAbandoned = random() < 0.2
    const [requests, tokens] = isAbandoned
      ? onExpire === 'KEEP'
        ? [1, estimate]
        : [0, 0]
      : [actual?.permits ?? 0, actual?.costs?.tokens ?? 0]
    for (const [rule, amount] of [
      ['team', tokens],
      ['user', tokens],
      ['requests', requests],
      ['all', requests],
    ] as const)
      cost(`${rule} ${rule === 'team' ? of.apiKey : rule === 'all' ? '' : of.userId}`, amount)
    if (isAbandoned) continue
    ends.push(async () => {
      const end = (): Promise<SettledReservation> =>
        actual ? gate.settle(options.id, actual) : gate.cancel(options.id)
      await surely(end, () => true)
    })
    while (ends.length > 8 || (ends.length > 0 && random() < 0.5))
      await ends.splice(Math.floor(random() * ends.length), 1)[0]?.()
    clock.advance(random() * 500)
  }
  for (const end of ends) await end()
  clock.advance(ttlMs)
  const actual: Record<string, number> = {}
  for (const of of contexts) {
    const { team, user, requests, all } = await used(observer, of)
    Object.assign(actual, {
      [`team ${of.apiKey}`]: team,
      [`user ${of.userId}`]: user,
      [`requests ${of.userId}`]: requests,
      'all ': all,
    })
  }
  expect(crashes).toBeGreaterThan(20)
  expect(actual).toEqual(expected)
})
