/** FLUXGATE_CANDIDATE_CASES sets the number of cases, FLUXGATE_TEST_SEED repeats a run. */
import { expect, it, onTestFinished } from 'vitest'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { pick, randomContext, randomRuleSet } from '../../fixtures/random-requests.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const startMs = 1_700_000_000_000
const band = (capacity: number) => ({ label: 'minute', capacity, window: '1m' })
const ruleSet = (capacity: number) => ({ id: 'api', rules: [{ id: 'per-ip', bands: [band(capacity)] }] })
const candidate = (capacity: number) => ({ ...ruleSet(capacity), id: 'api.candidate', candidateOf: 'api' })

const stores = {
  memory: (clock: ReturnType<typeof manualClock>) => memoryStore({ clock }),
  redis: (clock: ReturnType<typeof manualClock>) =>
    redisStore(sharedRedis().uri, { prefix: freshPrefix(), clock, timeoutMs: 20_000 }),
}

it.each(['memory', 'redis'] as const)('reports what would change, by rule and by key: %s', async (name) => {
  const clock = manualClock(startMs)
  const store = stores[name](clock)
  onTestFinished(() => store.close())
  const gate = await createFluxGate({ rules: [ruleSet(3), candidate(2)], store, clock })
  onTestFinished(() => gate.close())
  const allowed: boolean[] = []
  for (let i = 0; i < 4; i++) allowed.push((await gate.check({ clientIp: '10.0.0.1' })).allowed)
  await gate.check({ clientIp: '10.0.0.2' })
  // The candidate has no effect on decisions.
  expect(allowed).toEqual([true, true, true, false])
  const counts = { rejectedByBoth: 1, rejectedNowOnly: 0, rejectedThenOnly: 1 }
  await expect
    .poll(() => gate.candidates.report('api'))
    .toMatchObject({
      ruleSetId: 'api',
      decisions: 5,
      ...counts,
      rules: [{ ruleId: 'per-ip', ...counts }],
      keys: [{ ruleId: 'per-ip', key: '10.0.0.1', ...counts }],
    })
})

it('counts requests that only the current rules reject', async () => {
  const gate = await createFluxGate({ rules: [ruleSet(1), candidate(2)], clock: manualClock(startMs) })
  for (let i = 0; i < 3; i++) await gate.check({ clientIp: '10.0.0.1' })
  expect(gate.candidates.report('api')).toMatchObject({ rejectedByBoth: 1, rejectedNowOnly: 1, rejectedThenOnly: 0 })
  await gate.close()
})

it('is hidden from decisions, rule sets and explanations, and peeks are not compared', async () => {
  const gate = await createFluxGate({ rules: [ruleSet(1), candidate(1)], clock: manualClock(startMs) })
  expect(gate.ruleSets.map(({ id }) => id)).toEqual(['api'])
  expect(gate.defaultRuleSetId).toBe('api')
  const decision = await gate.check({ clientIp: '10.0.0.1' })
  expect(decision.bands.map(({ ruleId }) => ruleId)).toEqual(['per-ip'])
  await gate.check({ clientIp: '10.0.0.1' }, { peek: true })
  expect((await gate.explain({ clientIp: '10.0.0.1' })).rules).toHaveLength(1)
  expect(gate.candidates.report('api')?.decisions).toBe(1)
  expect(gate.candidates.ids()).toEqual(['api'])
  expect(gate.candidates.get('api')?.id).toBe('api.candidate')
  await gate.close()
})

it('refunds the candidate too', async () => {
  const gate = await createFluxGate({ rules: [ruleSet(5), candidate(1)], clock: manualClock(startMs) })
  await gate.check({ clientIp: '10.0.0.1' })
  await gate.refund({ clientIp: '10.0.0.1' })
  await gate.check({ clientIp: '10.0.0.1' })
  expect(gate.candidates.report('api')).toMatchObject({ decisions: 2, rejectedThenOnly: 0 })
  await gate.close()
})

it('charges and refunds the costs of a check, also for the candidate', async () => {
  const tokens = (capacity: number) => ({ rules: [{ id: 'tokens', cost: 'tokens', bands: [band(capacity)] }] })
  const rules = [
    { id: 'api', ...tokens(100) },
    { id: 'api.candidate', candidateOf: 'api', ...tokens(60) },
  ]
  const gate = await createFluxGate({ rules, clock: manualClock(startMs) })
  const costs = { tokens: 50 }
  await gate.check({ clientIp: '10.0.0.1' }, { costs })
  await gate.check({ clientIp: '10.0.0.1' }, { costs })
  await gate.check({ clientIp: '10.0.0.1' }, { costs })
  const counts = { rejectedByBoth: 1, rejectedNowOnly: 0, rejectedThenOnly: 1 }
  expect(gate.candidates.report('api')).toMatchObject({ decisions: 3, ...counts })
  await gate.refund({ clientIp: '10.0.0.1' }, { costs })
  await gate.check({ clientIp: '10.0.0.1' }, { costs })
  expect(gate.candidates.report('api')).toMatchObject({ decisions: 4, ...counts })
  await gate.close()
})

it('is evaluated in the same call to Redis', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const store = redisStore(server.uri, { prefix: freshPrefix() })
  const gate = await createFluxGate({ rules: [ruleSet(50), candidate(50)], store })
  onTestFinished(async () => {
    await gate.close()
    await store.close()
  })
  await gate.check({ clientIp: '10.0.0.1' })
  const { evalsha } = await countCalls(server, ['evalsha'], async () => {
    for (let i = 0; i < 20; i++) await gate.check({ clientIp: '10.0.0.1' })
  })
  expect(evalsha).toBe(20)
  await expect.poll(() => gate.candidates.report('api')?.decisions).toBe(21)
})

it.each([
  ['memory', 2_000],
  ['redis', 300],
] as const)(
  'reports no differences if it equals the current rules, for random rules: %s',
  async (name, byDefault) => {
    const seed = randomSeed()
    const random = seededRandom(seed)
    const cases = Number(process.env.FLUXGATE_CANDIDATE_CASES ?? byDefault)
    for (let done = 0; done < cases; done += 50) {
      // The memory store runs in real time: both decisions must see the same microsecond.
      const clock = name === 'redis' ? manualClock(startMs) : undefined
      const store = clock === undefined ? memoryStore() : stores.redis(clock)
      const rules = randomRuleSet(random, 'set')
      const gate = await createFluxGate({
        rules: [rules, { ...rules, id: 'set.candidate', candidateOf: 'set' }],
        store,
        ...(clock && { clock }),
        waitForRefill: { maxConcurrentWaits: 100_000 },
      })
      for (let i = 0; i < 50; i++) {
        await gate.check(randomContext(random), random() < 0.3 ? { permits: 2 } : {})
        clock?.advance(pick(random, [0, 0, 1, 400, 3_000]))
      }
      await expect.poll(() => gate.candidates.report('set')?.decisions, { message: `seed ${seed}` }).toBe(50)
      expect(gate.candidates.report('set'), `seed ${seed}`).toMatchObject({ rejectedNowOnly: 0, rejectedThenOnly: 0 })
      await gate.close()
      await store.close()
    }
  },
  120_000,
)

it('keeps a bounded number of keys, those with the most differences', async () => {
  const gate = await createFluxGate({ rules: [ruleSet(9), candidate(1)], clock: manualClock(startMs) })
  for (let i = 0; i < 15_000; i++) {
    gate.decide({ clientIp: `key-${i}` })
    gate.decide({ clientIp: `key-${i}` })
    if (i % 1_000 === 0) for (let j = 0; j < 3; j++) gate.decide({ clientIp: 'busy' })
  }
  const report = gate.candidates.report('api')
  expect(report?.keys).toHaveLength(100)
  expect(report?.keys[0]?.key).toBe('busy')
  await gate.close()
})

it('rejects a candidate whose id does not belong to its rule set', async () => {
  const wrong = { ...candidate(1), id: 'other' }
  await expect(createFluxGate({ rules: [ruleSet(1), wrong] })).rejects.toThrow(
    'ruleSets[1].id: must be "api.candidate", because the rule set is a candidate of "api"; received "other"',
  )
})

it('cannot be edited if the rules are defined in code', async () => {
  const gate = await createFluxGate({ rules: ruleSet(1) })
  await expect(gate.candidates.put('api', ruleSet(2), { by: 'ann' })).rejects.toMatchObject({
    code: 'FLUXGATE_RULES_READ_ONLY',
  })
  await gate.close()
})
