import { describe, expect, it } from 'vitest'
import type { RuleInput } from '../rules/schema/input.js'
import { manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'
import type { FluxGateOptions } from './options.js'

const start = 1_800_000_000_000

const rule = (id: string, capacity: number, given: Partial<RuleInput> = {}): RuleInput => ({
  id,
  bands: [{ capacity, window: '1m' }],
  ...given,
})

const gateOf = (rules: readonly RuleInput[], options: Partial<FluxGateOptions> = {}) =>
  createFluxGate({ rules: { id: 'api', rules }, clock: manualClock(start), ...options })

describe('delayed requests', () => {
  it('get a delay; an abort before its end refunds the permits', async () => {
    const clock = manualClock(start)
    const gate = await gateOf([rule('rule', 1, { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 60_000 })], { clock })
    await gate.check({})
    const controller = new AbortController()
    expect(await gate.check({}, { signal: controller.signal })).toMatchObject({ allowed: true, delayMs: 60_000 })
    expect((await gate.health()).waiting).toBe(1)
    expect((await gate.check({})).allowed).toBe(false)
    controller.abort()
    expect((await gate.health()).waiting).toBe(0)
    expect(await gate.check({})).toMatchObject({ allowed: true, delayMs: 60_000 })
    clock.advance(60_000)
    expect((await gate.health()).waiting).toBe(0)
  })

  it('are rejected beyond maxConcurrentWaits', async () => {
    const gate = await gateOf([rule('rule', 1, { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 600_000 })], {
      waitForRefill: { maxConcurrentWaits: 2 },
    })
    const decisions = []
    for (let i = 0; i < 4; i++) decisions.push((await gate.check({})).allowed)
    expect(decisions).toEqual([true, true, true, false])
    await gate.close()
  })

  it('get a retryAfterMs at which they would be delayed or allowed, if the waiting room is full', async () => {
    const leaky = rule('leaky', 100, { algorithm: 'LEAKY_BUCKET' })
    const { signal } = new AbortController()
    const none = await gateOf([leaky], { waitForRefill: { maxConcurrentWaits: 0 } })
    await none.check({}, { signal })
    expect(await none.check({}, { signal })).toMatchObject({ allowed: false, retryAfterMs: 600 })
    const clock = manualClock(start)
    const one = await gateOf([leaky], { clock, waitForRefill: { maxConcurrentWaits: 1 } })
    const decide = (clientIp: string) => one.check({ clientIp }, { signal })
    for (let i = 0; i < 2; i++) await decide('10.0.0.1')
    clock.advance(400)
    await decide('10.0.0.2')
    expect(await decide('10.0.0.2')).toMatchObject({ allowed: false, retryAfterMs: 200 })
    clock.advance(199)
    expect((await decide('10.0.0.2')).allowed).toBe(false)
    clock.advance(1)
    expect(await decide('10.0.0.2')).toMatchObject({ allowed: true, delayMs: 400 })
    for (const gate of [none, one]) await gate.close()
  })

  it('may retry when a slot is free, if the remaining wait is within maxWaitMs', async () => {
    const waiting = rule('waiting', 1, { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 100_000 })
    const clock = manualClock(start)
    const gate = await gateOf([waiting], { clock, waitForRefill: { maxConcurrentWaits: 1 } })
    for (const delayMs of [0, 60_000]) expect(await gate.check({})).toMatchObject({ allowed: true, delayMs })
    // The request would be released in 120 s. A slot is free in 60 s, and the remaining 60 s are within maxWaitMs of 100 s.
    expect(await gate.check({})).toMatchObject({ allowed: false, reason: 'LIMITED', retryAfterMs: 60_000 })
    clock.advance(59_999)
    expect((await gate.check({})).allowed).toBe(false)
    clock.advance(1)
    expect(await gate.check({})).toMatchObject({ allowed: true, delayMs: 60_000 })
    await gate.close()
  })

  it('may not retry before the remaining wait is within maxWaitMs', async () => {
    const waiting = rule('waiting', 1, { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 30_000 })
    const clock = manualClock(start)
    const gate = await gateOf([waiting, rule('other', 9)], { clock, waitForRefill: { maxConcurrentWaits: 1 } })
    await gate.check({ clientIp: '10.0.0.1' })
    clock.advance(40_000)
    await gate.check({ clientIp: '10.0.0.2' })
    expect(await gate.check({ clientIp: '10.0.0.1' })).toMatchObject({ allowed: true, delayMs: 20_000 })
    // A slot is free in 20 s, but only in 30 s is the remaining wait within maxWaitMs of 30 s.
    expect(await gate.check({ clientIp: '10.0.0.2' })).toMatchObject({ allowed: false, retryAfterMs: 30_000 })
    clock.advance(29_999)
    expect((await gate.check({ clientIp: '10.0.0.2' })).allowed).toBe(false)
    clock.advance(1)
    expect(await gate.check({ clientIp: '10.0.0.2' })).toMatchObject({ allowed: true, delayMs: 30_000 })
    await gate.close()
  })

  it('may not retry while a leaky bucket has room but would still delay them', async () => {
    const leaky = rule('leaky', 2, { algorithm: 'LEAKY_BUCKET' })
    const { signal } = new AbortController()
    const clock = manualClock(start)
    const gate = await gateOf([leaky], { clock, waitForRefill: { maxConcurrentWaits: 0 } })
    for (let i = 0; i < 2; i++) await gate.check({})
    expect(await gate.check({}, { signal })).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
    clock.advance(59_999)
    expect((await gate.check({}, { signal })).allowed).toBe(false)
    clock.advance(1)
    expect(await gate.check({}, { signal })).toMatchObject({ allowed: true, delayMs: 0 })
    await gate.close()
  })

  it('need no slot for a shadow rule', async () => {
    const shadow = rule('shadow', 9, { mode: 'SHADOW', onLimitExceed: 'WAIT_FOR_REFILL' })
    const leaky = rule('leaky', 2, { algorithm: 'LEAKY_BUCKET' })
    const gate = await gateOf([shadow, leaky], { waitForRefill: { maxConcurrentWaits: 0 } })
    for (const delayMs of [0, 30_000]) expect(await gate.check({})).toMatchObject({ allowed: true, delayMs })
    await gate.close()
  })

  it('of a leaky bucket are rejected without a charge if the waiting room is full', async () => {
    const leaky = rule('leaky', 100, { algorithm: 'LEAKY_BUCKET' })
    const { signal } = new AbortController()
    const gate = await gateOf([leaky], { waitForRefill: { maxConcurrentWaits: 1 } })
    const decisions = []
    for (let i = 0; i < 3; i++) decisions.push(await gate.check({}, { signal }))
    expect(decisions.map(({ allowed, delayMs }) => [allowed, delayMs])).toEqual([
      [true, 0],
      [true, 600],
      [false, 0],
    ])
    expect(decisions[2]).toMatchObject({ reason: 'LIMITED', retryAfterMs: 600, remaining: 98 })
    expect(decisions[2]?.bands).toMatchObject([{ allowed: false, retryAfterMs: 600, remaining: 98 }])
    expect(await gate.check({}, { signal, peek: true })).toEqual(decisions[2])
    await gate.close()
  })

  it('of a leaky bucket are bounded under WAIT_FOR_REFILL too', async () => {
    const leaky = rule('leaky', 100, { algorithm: 'LEAKY_BUCKET', onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 60_000 })
    const gate = await gateOf([leaky], { waitForRefill: { maxConcurrentWaits: 1 } })
    const allowed = []
    for (let i = 0; i < 4; i++) allowed.push((await gate.check({})).allowed)
    expect(allowed).toEqual([true, true, false, false])
    await gate.close()
  })

  it('of a leaky bucket need no slot if callers delay them themselves', async () => {
    const gate = await gateOf([rule('leaky', 500, { algorithm: 'LEAKY_BUCKET' })])
    const decisions = []
    for (let i = 0; i < 501; i++) decisions.push((await gate.check({})).allowed)
    expect(decisions.filter(Boolean)).toHaveLength(500)
    expect((await gate.health()).waiting).toBe(0)
  })
})
