/**
 * Explanations of random requests under random rules agree with the check that follows, and change nothing.
 * FLUXGATE_EXPLAIN_CASES sets the number of cases, FLUXGATE_TEST_SEED repeats a run.
 */
import { expect, it, onTestFinished } from 'vitest'
import type { Explanation } from '../../../src/core/explain/explanation.js'
import { type Random, seededRandom } from '../../../src/core/seeded-random.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { pick, randomContext, randomRuleSet } from '../../fixtures/random-requests.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const startMs = 1_700_000_000_000
const requestsPerGate = 50
const casesOf = (byDefault: number): number => Number(process.env.FLUXGATE_EXPLAIN_CASES ?? byDefault)

const stores = {
  memory: (clock: ReturnType<typeof manualClock>) => memoryStore({ clock }),
  redis: (clock: ReturnType<typeof manualClock>) =>
    redisStore(sharedRedis().uri, { prefix: freshPrefix(), clock, timeoutMs: 20_000 }),
}

it.each([
  ['memory', 1_000],
  ['redis', 300],
] as const)(
  'agrees with the check that follows, and charges nothing: %s',
  async (name, byDefault) => {
    const seed = randomSeed()
    const random = seededRandom(seed)
    for (let cases = 0; cases < casesOf(byDefault); cases += requestsPerGate) {
      const clock = manualClock(startMs)
      const store = stores[name](clock)
      const gate = await createFluxGate({
        rules: randomRuleSet(random, 'set'),
        store,
        clock,
        waitForRefill: { maxConcurrentWaits: 100_000 },
      })
      onTestFinished(() => store.close())
      await putOverrides(random, gate)
      for (let i = 0; i < requestsPerGate; i++) {
        await compare(random, gate, `${name}, seed ${seed}, case ${cases + i}`)
        clock.advance(pick(random, [0, 0, 1, 400, 3_000]))
      }
      await gate.close()
      await store.close()
    }
  },
  120_000,
)

async function putOverrides(random: Random, gate: FluxGate): Promise<void> {
  for (const { id: ruleId, overrides, limitScope } of gate.ruleSets[0]?.rules ?? []) {
    if (!overrides || limitScope !== 'USER_ID') continue
    const action = pick(random, ['ALLOW', 'DENY', 'LIMIT'] as const)
    const bands = [{ label: 'more', capacity: 9, window: '1m' }]
    await gate.overrides?.put('set', ruleId, { key: 'ann', action, ...(action === 'LIMIT' && { bands }) } as never)
  }
}

async function compare(random: Random, gate: FluxGate, where: string): Promise<void> {
  const context = randomContext(random)
  const options = random() < 0.3 ? { permits: 1 + Math.floor(random() * 3) } : {}
  const explanation = await gate.explain(context, options)
  expect(await gate.explain(context, options), `${where}: an explanation changed something`).toEqual(explanation)
  const decision = await gate.check(context, options)
  expect(explanation.decision, where).toEqual(decision)
  expect(explanation.rules, where).toHaveLength(gate.ruleSets[0]?.rules.length ?? 0)
  expectSameRules(explanation, where)
}

/** The rules that match are those whose bands decided, with the same keys. */
function expectSameRules({ rules, decision }: Explanation, where: string): void {
  for (const { status, failed, buckets } of rules) {
    expect(failed === null, where).toBe(status === 'MATCHED')
    expect(buckets.length > 0, where).toBe(status === 'MATCHED')
  }
  const missing = rules.find(({ status }) => status === 'MISSING_KEY')
  expect(decision.reason === 'MISSING_KEY', where).toBe(missing !== undefined)
  if (missing !== undefined) return
  const isMetered = ({ override }: { override: string | null }) => override !== 'ALLOW' && override !== 'DENY'
  const explained = rules.flatMap(({ ruleId, buckets }) =>
    buckets.filter(isMetered).flatMap(({ key, bands }) => bands.map(({ label }) => [ruleId, key, label].join(' '))),
  )
  const decided = decision.bands.map(({ ruleId, key, label }) => [ruleId, key, label].join(' '))
  if (decision.reason !== 'NO_RULE') expect(explained.sort(), where).toEqual(decided.sort())
  else expect(explained, where).toEqual([])
  for (const { ruleId, buckets } of rules)
    for (const { key, shadow, bands } of buckets.filter(isMetered))
      for (const { label, allowed, retryAfterMs } of bands)
        expect(decision.bands, where).toContainEqual(
          expect.objectContaining({ ruleId, key, label, shadow, allowed, retryAfterMs }),
        )
}
