/** Rule sets on a virtual clock, as `fluxgate simulate --rules` runs them, against simple models and exact times. */
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { RuleInput } from '../../../src/rules/schema/input.js'
import type { Arrival } from '../../../src/simulate/arrival.js'
import { poisson, serviceTimes, simulateRules, uniform, virtualClock } from '../../../src/simulate/index.js'
import { randomSeed } from '../../fixtures/random-seed.js'

const second = 1_000_000

async function simulate(rule: object, arrivals: Iterable<Arrival>, startAt = 0) {
  const clock = virtualClock()
  clock.moveTo(startAt)
  const rules = { id: 'simulated', rules: [{ id: 'rule', ...rule } as RuleInput] }
  const gate = await createFluxGate({
    rules,
    clock,
    reload: { strategy: 'NONE' },
    waitForRefill: { maxConcurrentWaits: 1_000 },
  })
  try {
    const simulation = await simulateRules(
      {
        clock,
        decide: ({ context = {}, costs }) => gate.decide(context, { costs }),
        release: (holdId) => gate.release(holdId),
        renew: (holdId) => gate.renew(holdId),
      },
      arrivals,
    )
    return { ...simulation, heldCount: gate.heldCount }
  } finally {
    await gate.close()
  }
}

const every = (intervalMs: number, count: number, fields: Partial<Arrival> = {}): Arrival[] =>
  Array.from({ length: count }, (_, i) => ({
    at: i * intervalMs * 1_000,
    context: { clientIp: '203.0.113.7' },
    ...fields,
  }))

describe('CONCURRENCY', () => {
  const slots = (capacity: number, fields: object = {}) => ({
    limitScope: 'GLOBAL',
    algorithm: 'CONCURRENCY',
    bands: [{ label: 'slots', capacity, maxHold: '1s' }],
    ...fields,
  })

  it('releases slots at their exact times, also in the tick of an arrival', async () => {
    const { total, rules } = await simulate(slots(1), every(100, 5, { duration: 200_000 }))
    expect(rules).toMatchObject([{ allowed: 3, rejected: 2 }])
    expect(total.mostInProgress).toBe(1)
  })

  it('renews the slots of requests that take longer than maxHold', async () => {
    const { rules } = await simulate(slots(1), every(1_000, 11, { duration: 10 * second }))
    expect(rules).toMatchObject([{ allowed: 2, rejected: 9 }])
  })

  it('agrees with a model of a server that rejects, with random service times', async () => {
    const seed = randomSeed()
    const random = seededRandom(seed)
    const next = serviceTimes('lognormal', 300_000, random)
    const arrivals = Array.from(poisson(30, { from: 0, until: 60 * second }, random), ({ at }) => ({
      at,
      duration: next(),
    }))
    let ends: number[] = []
    let allowed = 0
    for (const { at, duration } of arrivals) {
      ends = ends.filter((end) => end > at)
      if (ends.length === 5) continue
      ends.push(at + duration)
      allowed += 1
    }
    const { total } = await simulate(slots(5), arrivals)
    expect(total, `FLUXGATE_TEST_SEED=${seed}`).toMatchObject({ offered: arrivals.length, allowed, mostInProgress: 5 })
  })

  it('agrees with a model of a queue, if requests wait for a slot', async () => {
    const seed = randomSeed()
    const random = seededRandom(seed)
    const next = serviceTimes('exponential', 150_000, random)
    const arrivals = Array.from(poisson(20, { from: 0, until: 20 * second }, random), ({ at }) => ({
      at,
      duration: next(),
    }))
    // Three slots, each free at some time; a request takes the one that is free first.
    const free = [0, 0, 0]
    let delayed = 0
    let maxDelay = 0
    for (const { at, duration } of arrivals) {
      free.sort((a, b) => a - b)
      const start = Math.max(at, free[0] as number)
      free[0] = start + duration
      if (start > at) delayed += 1
      maxDelay = Math.max(maxDelay, start - at)
    }
    const rule = slots(3, { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 3_600_000 })
    const { total } = await simulate(rule, arrivals)
    expect(total, `FLUXGATE_TEST_SEED=${seed}`).toMatchObject({
      allowed: arrivals.length,
      rejected: 0,
      delayed,
      maxDelayMs: maxDelay / 1_000,
      mostInProgress: 3,
    })
  })

  it('rejects requests whose wait would be too long, after that time', async () => {
    const rule = slots(1, { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 500 })
    const { total } = await simulate(rule, every(100, 3, { duration: 450_000 }))
    expect(total).toMatchObject({ allowed: 2, rejected: 1, maxDelayMs: 350 })
  })
})

describe('bans', () => {
  it('last for their exact time, and their rejections are counted', async () => {
    const ban = { after: 2, within: '1m', for: '10s' }
    // At 0 s allowed, at 1 s and 2 s limited, from 2 s to 12 s banned, then allowed, as the window has passed.
    const rule = { bands: [{ label: 'b', capacity: 1, window: '5s', algorithm: 'FIXED_WINDOW' }], ban }
    const { rules } = await simulate(rule, every(1_000, 13))
    expect(rules).toMatchObject([{ applied: 13, allowed: 2, rejected: 11, banned: 9 }])
  })
})

describe('calendar quotas', () => {
  it('begin with the month in their time zone', async () => {
    const start = Date.UTC(2026, 0, 31, 12) * 1_000
    const day = 86_400 * second
    const arrivals = Array.from(uniform(1 / 3_600, { from: start, until: start + day }), ({ at }) => ({ at }))
    const band = { label: 'm', capacity: 1, algorithm: 'FIXED_WINDOW', calendar: 'MONTH', timeZone: 'Asia/Seoul' }
    // In Seoul, February begins at 15:00 UTC.
    const { total } = await simulate({ limitScope: 'GLOBAL', bands: [band] }, arrivals, start)
    const allowedAt = total.buckets.flatMap(({ allowed }, i) => (allowed > 0 ? [i] : []))
    expect(total).toMatchObject({ offered: 24, allowed: 2, longestGapMs: 3 * 3_600_000 })
    expect(allowedAt).toHaveLength(2)
  })
})

describe('costs', () => {
  it('are charged to the rules that name them', async () => {
    const rule = { cost: 'tokens', limitScope: 'GLOBAL', bands: [{ label: 'b', capacity: 100, window: '1h' }] }
    const costly = every(1, 3, { costs: { tokens: 40 } })
    const { rules, withoutRule } = await simulate(rule, [...costly, { at: 3_000, context: {} }])
    expect(rules).toMatchObject([{ applied: 3, allowed: 2, rejected: 1 }])
    expect(withoutRule).toBe(1)
  })
})
