import { describe, expect, it } from 'vitest'
import type { BucketStore } from '../../core/bucket-store.js'
import { FluxGateError } from '../../core/errors.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createFluxGate } from '../create-flux-gate.js'

const start = 1_800_000_000_000

type Link = 'UP' | 'FAILING' | 'SILENT'

/** A gate over a remote store whose decisions and probes fail independently of each other. */
async function gateOver({ hasProbe = true } = {}) {
  const clock = manualClock(start)
  const memory = memoryStore({ clock })
  const link = { decisions: 'UP' as Link, probes: 'UP' as Link, probeCount: 0, probeError: new Error('no connection') }
  const over = <T>(state: Link, error: Error, call: () => Promise<T>): Promise<T> =>
    state === 'UP' ? call() : state === 'FAILING' ? Promise.reject(error) : new Promise(() => {})
  const store: BucketStore = {
    charge: (demands, peek) => over(link.decisions, new Error('decision failed'), () => memory.charge(demands, peek)),
    refund: (refunds) => memory.refund(refunds),
    reset: (group, key) => memory.reset(group, key),
    close: () => memory.close(),
    ...(hasProbe && {
      probe() {
        link.probeCount += 1
        return over(link.probes, link.probeError, async () => {})
      },
    }),
  }
  const rules = { id: 'api', rules: [{ id: 'rule', bands: [{ capacity: 100, window: '1h' }] }] }
  const gate = await createFluxGate({ rules, store, clock, resilience: { openMs: 60_000 } })
  const events: string[] = []
  gate.on('degraded', ({ error }) => events.push((error as Error).message))
  gate.on('recovered', () => events.push('recovered'))
  const check = async (times = 1) => {
    for (let i = 0; i < times; i++) await gate.check({})
  }
  const storeHealth = async () => (await gate.health()).store
  return { gate, clock, link, events, check, storeHealth }
}

/** Runs all pending work that does not depend on the clock. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('gate health', () => {
  it('uses a probe that concurrent callers share and that is cached for one second', async () => {
    const { clock, link, storeHealth } = await gateOver()
    expect(link.probeCount).toBe(0)
    await Promise.all(Array.from({ length: 50 }, storeHealth))
    clock.advance(999)
    await storeHealth()
    expect(link.probeCount).toBe(1)
    clock.advance(1)
    await Promise.all([storeHealth(), storeHealth()])
    expect(link.probeCount).toBe(2)
  })

  it('reports an outage and its end without traffic, with their times and one event each', async () => {
    const { gate, clock, link, events, storeHealth } = await gateOver()
    expect(await storeHealth()).toMatchObject({ status: 'UP', sinceAt: start, error: null })
    link.probes = 'FAILING'
    clock.advance(1_000)
    const down = { status: 'DOWN', sinceAt: start + 1_000, error: 'no connection' }
    expect(await gate.health()).toMatchObject({ status: 'DEGRADED', store: down })
    clock.advance(5_000)
    expect(await storeHealth()).toMatchObject(down)
    link.probes = 'UP'
    clock.advance(1_000)
    expect(await gate.health()).toMatchObject({
      status: 'UP',
      store: { status: 'UP', sinceAt: start + 7_000, error: null },
    })
    expect(events).toEqual(['no connection', 'recovered'])
  })

  it('takes no longer than the timeout of a call if the store does not answer', async () => {
    const { clock, link, storeHealth } = await gateOver()
    link.probes = 'SILENT'
    let health: Awaited<ReturnType<typeof storeHealth>> | undefined
    void storeHealth().then((found) => {
      health = found
    })
    await turn()
    clock.advance(99)
    await turn()
    expect(health).toBeUndefined()
    clock.advance(1)
    await turn()
    expect(health).toMatchObject({
      status: 'DOWN',
      error: 'The bucket store failed to decide: it did not reply within 100 ms.',
    })
  })

  it('is down as soon as a decision fails, and up only after a probe', async () => {
    const { clock, link, events, check, storeHealth } = await gateOver()
    await storeHealth()
    link.decisions = 'FAILING'
    await check()
    expect(await storeHealth()).toMatchObject({ status: 'DOWN', error: expect.stringContaining('decision failed') })
    link.decisions = 'UP'
    clock.advance(999)
    await check()
    expect(await storeHealth()).toMatchObject({ status: 'DOWN' })
    // The first successful decision after one second starts a probe, without a call of health().
    clock.advance(1)
    await check()
    await turn()
    expect(events).toEqual([expect.stringContaining('decision failed'), 'recovered'])
  })

  it('stays down while the probe fails, even if decisions succeed', async () => {
    const { clock, link, events, check, storeHealth } = await gateOver()
    link.probes = 'FAILING'
    await storeHealth()
    for (let second = 0; second < 5; second++) {
      clock.advance(1_000)
      await check(3)
      expect(await storeHealth()).toMatchObject({ status: 'DOWN', sinceAt: start, error: 'no connection' })
    }
    expect(events).toEqual(['no connection'])
  })

  it('stays down while decisions fail, even if the probe succeeds', async () => {
    const { clock, link, events, check, storeHealth } = await gateOver()
    link.decisions = 'FAILING'
    await check()
    clock.advance(1_000)
    await check()
    expect(await storeHealth()).toMatchObject({ status: 'DOWN', sinceAt: start })
    expect(events).toHaveLength(1)
  })

  it('is up with an open circuit breaker if the probe succeeds', async () => {
    const { gate, clock, link, events, check, storeHealth } = await gateOver()
    link.decisions = 'FAILING'
    await check(5)
    expect(await storeHealth()).toMatchObject({ status: 'DOWN', breaker: 'OPEN' })
    // Each failed probe of the breaker doubles the time until the next one, here up to 3.84 s.
    for (let ms = 30; ms < 3_840; ms *= 2) {
      clock.advance(ms)
      await check()
    }
    link.decisions = 'UP'
    clock.advance(1_000)
    await check()
    expect(await gate.health()).toMatchObject({
      status: 'DEGRADED',
      store: { status: 'UP', breaker: 'OPEN', error: expect.stringContaining('the circuit breaker is open') },
    })
    clock.advance(1_000)
    await check(10)
    expect(await storeHealth()).toMatchObject({ status: 'UP' })
    expect(events).toEqual([expect.stringContaining('decision failed'), 'recovered'])
    clock.advance(60_000)
    await check()
    expect(await gate.health()).toMatchObject({ status: 'UP', store: { breaker: 'CLOSED', error: null } })
  })

  it('ignores a probe that fails because of a single bucket', async () => {
    const { link, storeHealth } = await gateOver()
    link.probes = 'FAILING'
    link.probeError = new FluxGateError('FLUXGATE_BUCKET_MOVING', 'A slot is being moved.')
    expect(await storeHealth()).toMatchObject({ status: 'UP', error: null })
  })

  it('depends on decisions only if the store has no probe', async () => {
    const { clock, link, events, check, storeHealth } = await gateOver({ hasProbe: false })
    link.decisions = 'FAILING'
    expect(await storeHealth()).toMatchObject({ status: 'UP' })
    await check()
    expect(await storeHealth()).toMatchObject({ status: 'DOWN', sinceAt: start })
    link.decisions = 'UP'
    clock.advance(249)
    await check()
    expect(await storeHealth()).toMatchObject({ status: 'DOWN' })
    clock.advance(1)
    await check()
    expect(await storeHealth()).toMatchObject({ status: 'UP' })
    expect(events).toHaveLength(2)
  })

  it('is down after close, without a probe and without an event', async () => {
    const { gate, link, events } = await gateOver()
    link.probes = 'FAILING'
    const pending = gate.health()
    await gate.close()
    expect(await pending).toMatchObject({ status: 'DOWN' })
    expect(await gate.health()).toMatchObject({ status: 'DOWN' })
    expect(link.probeCount).toBe(1)
    expect(events).toEqual([])
  })
})
