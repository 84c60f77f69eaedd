/** Two processes that share a Redis: each has a gate, its rules in Redis, and writes its report. */
import { expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { connectRedis } from '../../../src/redis/client/connect-redis.js'
import { redisRuleStore } from '../../../src/rules/redis/redis-rule-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { withShownKeys } from '../../../src/telemetry/candidates/report.js'
import { SharedReports } from '../../../src/telemetry/candidates/shared-reports.js'
import { keyDigest } from '../../../src/telemetry/key-digest.js'
import { eventually } from '../../fixtures/eventually.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const ruleSet = (capacity: number) => ({
  id: 'api',
  rules: [{ id: 'per-ip', bands: [{ label: 'minute', capacity, window: '1m' }] }],
})

async function openProcess(prefix: string) {
  const rules = redisRuleStore(sharedRedis().uri, { prefix, channel: `${prefix}:reload` })
  const store = redisStore(sharedRedis().uri, { prefix, timeoutMs: 20_000 })
  const gate = await createFluxGate({ rules, store })
  const reports = new SharedReports({
    connect: () => connectRedis(sharedRedis().uri, undefined),
    prefix,
    own: () => gate.candidates.ids().flatMap((id) => withShownKeys(gate.candidates.report(id), keyDigest) ?? []),
  })
  onTestFinished(async () => {
    await reports.close()
    await gate.close()
    await store.close()
    await rules.close()
  })
  return { gate, reports }
}

it('adds up the reports of all processes, which evaluate a candidate as soon as it is stored', async () => {
  const prefix = freshPrefix().slice(0, -1)
  const setup = redisRuleStore(sharedRedis().uri, { prefix, channel: `${prefix}:reload` })
  await setup.putRuleSet(ruleSet(4), { by: 'ann' })
  await setup.close()
  const [one, other] = [await openProcess(prefix), await openProcess(prefix)]
  await one.gate.candidates.put('api', ruleSet(2), { by: 'ann' })
  await eventually('the other process has the candidate', async () => other.gate.candidates.ids().length === 1)
  // Both processes share the buckets of the candidate too: it rejects the third and the fourth request.
  for (const { gate } of [one, other, one, other])
    expect((await gate.check({ clientIp: '10.0.0.1' })).allowed).toBe(true)
  await eventually('all decisions are compared', async () =>
    [one, other].every(({ gate }) => gate.candidates.report('api')?.decisions === 2),
  )
  for (const { reports } of [one, other]) await reports.write()
  const expected = { decisions: 4, rejectedByBoth: 0, rejectedNowOnly: 0, rejectedThenOnly: 2 }
  for (const { reports } of [one, other])
    expect(await reports.read('api')).toMatchObject({
      ...expected,
      rules: [{ ruleId: 'per-ip', rejectedThenOnly: 2 }],
      keys: [{ ruleId: 'per-ip', key: keyDigest('10.0.0.1'), rejectedThenOnly: 2 }],
    })
  // Promoted in one process, in effect in both.
  await other.gate.candidates.promote('api', { by: 'bob' })
  await eventually('the candidate is in effect everywhere', async () =>
    [one, other].every(
      ({ gate }) => gate.candidates.ids().length === 0 && gate.ruleSets[0]?.rules[0]?.bands[0]?.capacity === 2,
    ),
  )
  expect(await one.reports.read('api')).toBeUndefined()
})

it('joins a write in progress, so that writes do not pile up while Redis is unavailable', async () => {
  const { reports } = await openProcess(freshPrefix().slice(0, -1))
  const writing = reports.write()
  expect(reports.write()).toBe(writing)
  await writing
  expect(reports.write()).not.toBe(writing)
})
