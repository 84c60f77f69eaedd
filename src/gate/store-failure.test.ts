import { describe, expect, it } from 'vitest'
import type { BucketStore } from '../core/bucket-store.js'
import type { OnStoreFailure } from '../core/rule.js'
import type { RuleInput } from '../rules/schema/input.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import { type ManualClock, manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'
import type { FluxGateOptions } from './options.js'

const start = 1_800_000_000_000

/** A remote store whose connection can fail (calls reject) or go silent (calls never settle). */
function remoteStore(clock: ManualClock) {
  const memory = memoryStore({ clock })
  const line = { state: 'UP' as 'UP' | 'FAILING' | 'SILENT', calls: 0 }
  const over = async <T>(call: () => Promise<T>): Promise<T> => {
    line.calls += 1
    if (line.state === 'FAILING') throw new Error('connection refused')
    return line.state === 'SILENT' ? new Promise<T>(() => {}) : call()
  }
  const store: BucketStore = {
    charge: (demands, peek) => over(() => memory.charge(demands, peek)),
    refund: (refunds) => over(() => memory.refund(refunds)),
    reset: (group, key) => over(() => memory.reset(group, key)),
    close: () => memory.close(),
  }
  return { store, line }
}

async function gateOver(policy: OnStoreFailure | undefined, options: Partial<FluxGateOptions> = {}) {
  const clock = manualClock(start)
  const { store, line } = remoteStore(clock)
  const rule: RuleInput = {
    id: 'rule',
    bands: [{ capacity: 4, window: '1m' }],
    ...(policy && { onStoreFailure: policy }),
  }
  const gate = await createFluxGate({ rules: { id: 'api', rules: [rule] }, store, clock, ...options })
  /** One decision. Advances the clock to the timeout if the store does not answer. */
  const check = async () => {
    const decision = gate.check({})
    await new Promise((resolve) => setImmediate(resolve))
    if (line.state === 'SILENT') clock.advance(100)
    return decision
  }
  return { gate, clock, line, check }
}

describe.each([
  ['FAILING', 'FLUXGATE_STORE_FAILED'],
  ['SILENT', 'FLUXGATE_STORE_TIMEOUT'],
] as const)('a store that is %s', (state, cause) => {
  it('LOCAL: this process enforces the same rules, with degraded decisions', async () => {
    const { line, check } = await gateOver('LOCAL')
    expect(await check()).toMatchObject({ allowed: true, degraded: false, remaining: 3 })
    line.state = state
    const decisions = []
    for (let i = 0; i < 5; i++) decisions.push(await check())
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false])
    expect(decisions[4]).toMatchObject({ degraded: true, reason: 'LIMITED', limit: 4 })
  })

  it('LOCAL with localShare: enforces a share of each limit', async () => {
    const { line, check } = await gateOver(undefined, { localShare: 0.5 })
    line.state = state
    const decisions = []
    for (let i = 0; i < 3; i++) decisions.push((await check()).allowed)
    expect(decisions).toEqual([true, true, false])
  })

  it('LOCAL with localShare: allowed and rejected decisions report the shared limit', async () => {
    const clock = manualClock(start)
    const { store, line } = remoteStore(clock)
    const hourly: RuleInput = { id: 'hourly', bands: [{ capacity: 4, refillTokens: 1, window: '1h' }] }
    const gate = await createFluxGate({ rules: { id: 'api', rules: [hourly] }, store, clock, localShare: 0.25 })
    line.state = 'FAILING'
    const part = { limit: 1, bands: [{ limit: 1, windowMs: 4 * 3_600_000 }] }
    expect(await gate.check({})).toMatchObject({ allowed: true, ...part })
    expect(await gate.check({})).toMatchObject({ allowed: false, ...part })
  })

  it('LOCAL with localShare: scales the refill rate too, not only the burst', async () => {
    const clock = manualClock(start)
    const { store, line } = remoteStore(clock)
    const slow: RuleInput = { id: 'slow', bands: [{ capacity: 10, refillTokens: 1, window: '1s' }] }
    const gate = await createFluxGate({ rules: { id: 'api', rules: [slow] }, store, clock, localShare: 0.1 })
    line.state = 'FAILING'
    let admitted = 0
    for (let second = 0; second < 100; second++) {
      if ((await gate.check({})).allowed) admitted += 1
      clock.advance(1000)
    }
    expect(admitted).toBe(10)
  })

  it('ALLOW and DENY: follows the rule, then the configuration', async () => {
    for (const [policy, options] of [
      ['ALLOW', {}],
      [undefined, { onStoreFailure: 'ALLOW' }],
    ] as const) {
      const { line, check } = await gateOver(policy, options)
      line.state = state
      expect(await check()).toMatchObject({ allowed: true, reason: 'STORE_FAILURE', degraded: true, remaining: -1 })
    }
    const { line, check } = await gateOver('DENY')
    line.state = state
    expect(await check()).toMatchObject({ allowed: false, reason: 'STORE_FAILURE', degraded: true, ruleId: 'rule' })
  })

  it('names the cause in decisions while the store fails, and not in others', async () => {
    for (const policy of ['LOCAL', 'ALLOW', 'DENY'] as const) {
      const { line, check } = await gateOver(policy)
      expect(await check()).not.toHaveProperty('degradedCause')
      line.state = state
      expect((await check()).degradedCause).toBe(cause)
      for (let i = 0; i < 4; i++) await check()
      expect((await check()).degradedCause).toBe('FLUXGATE_STORE_OPEN')
    }
  })

  it('opens the breaker after five failures, and probes after 30 ms and then after twice as long', async () => {
    const { gate, clock, line, check } = await gateOver('LOCAL')
    const events: string[] = []
    gate.on('degraded', () => events.push('degraded'))
    gate.on('recovered', () => events.push('recovered'))
    line.state = state
    for (let i = 0; i < 5; i++) await check()
    const calls = line.calls
    const openedAt = clock.now()
    for (let i = 0; i < 20; i++) expect((await gate.check({})).degraded).toBe(true)
    expect(line.calls).toBe(calls)
    expect(await gate.health()).toMatchObject({
      status: 'DEGRADED',
      store: { status: 'DOWN', error: expect.any(String) },
    })
    clock.advance(openedAt + 29 - clock.now())
    await gate.check({})
    expect(line.calls).toBe(calls)
    clock.advance(1)
    expect((await check()).degraded).toBe(true)
    expect(line.calls).toBe(calls + 1)
    line.state = 'UP'
    const reopenedAt = clock.now()
    clock.advance(59)
    expect((await gate.check({})).degraded).toBe(true)
    clock.advance(reopenedAt + 60 - clock.now())
    expect(await gate.check({})).toMatchObject({ degraded: false, remaining: 3 })
    clock.advance(250)
    expect((await gate.check({})).degraded).toBe(false)
    expect(events).toEqual(['degraded', 'recovered'])
    expect(await gate.health()).toMatchObject({ status: 'UP', store: { status: 'UP', error: null } })
  })
})

describe('not a store failure', () => {
  it('invalid arguments and aborted signals', async () => {
    const { gate, line } = await gateOver('ALLOW')
    await expect(gate.check({}, { permits: -1 })).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
    await expect(gate.check({}, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/i)
    expect(line.calls).toBe(0)
    expect((await gate.health()).status).toBe('UP')
  })

  it('a shadow rule, which never rejects, whatever its failure policy', async () => {
    const clock = manualClock(start)
    const { store, line } = remoteStore(clock)
    const rule: RuleInput = {
      id: 'trial',
      mode: 'SHADOW',
      onStoreFailure: 'DENY',
      bands: [{ capacity: 1, window: '1m' }],
    }
    const gate = await createFluxGate({ rules: { id: 'api', rules: [rule] }, store, clock })
    line.state = 'FAILING'
    expect(await gate.check({})).toMatchObject({ allowed: true, degraded: true })
  })
})
