/** Requests that leave while a gate delays them: all buckets end up as if those requests had never been made. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { type Clock, systemClock } from '../../../src/core/clock.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import type { RuleInput } from '../../../src/rules/schema/input.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { dayMs, leaveAll, orders, settledState, stores, turn } from './held-requests.js'

/** One or two permits per day, or five per hour, so that nothing is refilled while a test runs. */
const shared: RuleInput = {
  id: 'shared',
  algorithm: 'LEAKY_BUCKET',
  limitScope: 'GLOBAL',
  bands: [
    { label: 'slow', capacity: 400, window: '366d' },
    { label: 'fast', capacity: 400, window: '183d' },
  ],
}
const perUser: RuleInput = {
  id: 'per-user',
  limitScope: 'USER_ID',
  onLimitExceed: 'WAIT_FOR_REFILL',
  maxWaitMs: dayMs,
  bands: [{ capacity: 20, window: '4h' }],
}
const leasedRule: RuleInput = {
  id: 'leased',
  limitScope: 'GLOBAL',
  consistency: 'LEASED',
  bands: [{ capacity: 10_000, window: '366d' }],
}

/** Runs at a hundredth of real time. Otherwise leases would expire while a slow machine runs the test. */
const startedAt = systemClock.now()
const slowClock: Clock = { now: () => startedAt + (systemClock.now() - startedAt) / 100 }
const withSlowClock = (): BucketStore => {
  const store = redisStore(sharedRedis().uri, { prefix: freshPrefix(), timeoutMs: 10_000, clock: slowClock })
  onTestFinished(() => store.close())
  return store
}

const users = ['ann', 'bob', 'eve']
const userOf = (i: number): string => users[i % users.length] as string

type BucketState = readonly [ruleId: string, key: string, label: string, remaining: number, resetAt: number | null]

async function bucketsOf(gate: FluxGate, rules: readonly RuleInput[]): Promise<readonly BucketState[]> {
  const looks = rules.flatMap(({ id, limitScope, consistency }) =>
    (limitScope === 'GLOBAL' ? ['global'] : users).map(async (key) => {
      const ruleId = id as string
      const bands = await gate.look({ ruleSetId: 'api', ruleId, key })
      // Leased permits count as spent in `resetAt` until they are returned, which takes a while.
      const isLeased = consistency === 'LEASED'
      return bands.map(
        ({ label, remaining, resetAt }): BucketState => [ruleId, key, label, remaining, isLeased ? null : resetAt],
      )
    }),
  )
  return (await Promise.all(looks)).flat()
}

describe.each(Object.entries(stores))('100 requests delayed by a gate, store: %s', (name, create) => {
  const seed = randomSeed()
  const sets: Readonly<Record<string, readonly RuleInput[]>> = {
    'one rule': [{ ...perUser, limitScope: 'GLOBAL' }],
    'several rules with several bands': [shared, perUser],
    ...(name === 'Redis' && { 'a leased rule': [shared, leasedRule] }),
  }
  describe.each(Object.entries(sets))('%s', (_, rules) => {
    it.each([
      ['signal', false],
      ['signal and onLeave', true],
    ])(`leave by %s, in each order (seed ${seed})`, async (_, isHeld) => {
      const random = seededRandom(seed)
      const gate = await createFluxGate({
        rules: { id: 'api', rules },
        store: rules.includes(leasedRule) ? withSlowClock() : create(),
        waitForRefill: { maxConcurrentWaits: 200 },
      })
      onTestFinished(() => gate.close())
      for (let i = 0; i < 20; i++) await gate.check({ userId: userOf(i) })
      const before = await bucketsOf(gate, rules)
      for (const order of Object.values(orders)) {
        const leave: (() => void)[] = []
        let left = 0
        for (let i = 0; i < 100; i++) {
          const controller = new AbortController()
          const options = { signal: controller.signal, ...(isHeld && { onLeave: () => left++ }) }
          const { allowed, delayMs, degraded } = await gate.check({ userId: userOf(i) }, options)
          expect([allowed, delayMs > 0, degraded]).toEqual([true, true, false])
          leave.push(() => controller.abort())
        }
        expect(await bucketsOf(gate, rules)).not.toEqual(before)
        await leaveAll(leave, () => order(random), turn)
        expect(left).toBe(isHeld ? 100 : 0)
        expect(await settledState(() => bucketsOf(gate, rules), before)).toEqual(before)
      }
    })
  })
})
