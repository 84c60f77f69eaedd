import { describe, expect, it, vi } from 'vitest'
import { boundedKey } from '../../core/keys/bounded-key.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { RuleTable } from '../../stores/memory/rule-tables.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createLimiter } from './create-limiter.js'

const start = 1_800_000_000_000

function limited(maxKeys: number, capacity: number) {
  const clock = manualClock(start)
  const store = memoryStore({ maxKeys, clock })
  return { clock, store, limiter: createLimiter({ capacity, window: '10s', store, clock }) }
}

describe('long keys', () => {
  it('have separate buckets, refunds and resets, although only their digest is stored', async () => {
    const { limiter } = limited(100, 2)
    const [long, other] = [`${'x'.repeat(15_000)}a`, `${'x'.repeat(15_000)}b`]
    expect(limiter.consumeSync(long, 2)).toMatchObject({ allowed: true, key: long })
    expect([limiter.consumeSync(long).allowed, limiter.consumeSync(other).allowed]).toEqual([false, true])
    await limiter.refund(long)
    expect([limiter.consumeSync(long).allowed, limiter.consumeSync(long).allowed]).toEqual([true, false])
    await limiter.reset(long)
    expect(limiter.consumeSync(long).remaining).toBe(1)
  })

  it('share no bucket with a short key that equals their digest', () => {
    const { limiter } = limited(100, 1)
    const long = 'y'.repeat(129)
    for (const key of [long, boundedKey(long), boundedKey(boundedKey(long))])
      expect(limiter.consumeSync(key).allowed).toBe(true)
    expect(limiter.consumeSync('y'.repeat(128)).allowed).toBe(true)
    expect(boundedKey('y'.repeat(128))).toBe('y'.repeat(128))
    expect(boundedKey('€'.repeat(43))).toMatch(/^%sha256-/)
  })
})

describe('memoryStore bounds', () => {
  it('keeps at most maxKeys keys', () => {
    const { store, limiter } = limited(100, 2)
    for (let i = 0; i < 1000; i++) limiter.consumeSync(`key${i}`)
    expect(store.size).toBeLessThanOrEqual(100)
  })

  it('evicts a full bucket before one in use', () => {
    const { clock, limiter } = limited(3, 10)
    limiter.consumeSync('full')
    clock.advance(5000)
    limiter.consumeSync('used', 9)
    limiter.consumeSync('rejecting', 10)
    limiter.consumeSync('new')
    expect(limiter.consumeSync('used', 2).allowed).toBe(false)
    expect(limiter.consumeSync('rejecting').allowed).toBe(false)
  })

  it('evicts the bucket closest to full if none is full', () => {
    const { limiter } = limited(3, 10)
    limiter.consumeSync('nearly empty', 9)
    limiter.consumeSync('nearly full', 1)
    limiter.consumeSync('rejecting', 10)
    limiter.consumeSync('new', 5)
    expect(limiter.consumeSync('nearly empty', 2).allowed).toBe(false)
    expect(limiter.consumeSync('rejecting').allowed).toBe(false)
  })

  it('never evicts a rejecting bucket: if all are, new keys share one bucket', () => {
    const { store, limiter } = limited(10, 2)
    for (let i = 0; i < 10; i++) limiter.consumeSync(`drained${i}`, 2)
    const newcomers = Array.from({ length: 50 }, (_, i) => limiter.consumeSync(`new${i}`).allowed)
    expect(newcomers.filter(Boolean)).toHaveLength(2)
    for (let i = 0; i < 10; i++) expect(limiter.consumeSync(`drained${i}`).allowed).toBe(false)
    expect(store.size).toBeLessThanOrEqual(11)
  })

  it('counts a bucket as rejecting if it cannot afford one request of its rule', () => {
    const clock = manualClock(start)
    const store = memoryStore({ maxKeys: 2, clock })
    const limiter = createLimiter({ capacity: 10, window: '10s', permits: 5, store, clock })
    limiter.consumeSync('a')
    limiter.consumeSync('a')
    clock.advance(4000)
    limiter.consumeSync('b')
    limiter.consumeSync('c')
    expect(limiter.consumeSync('a').allowed).toBe(false)
  })

  it.each([
    { capacity: 2, what: 'buckets can be evicted' },
    { capacity: 1, what: 'all buckets are rejecting' },
  ])('inspects few buckets per new key in a flood if $what', ({ capacity }) => {
    const { limiter } = limited(5_000, capacity)
    for (let i = 0; i < 5_000; i++) limiter.consumeSync(`key${i}`)
    const looks = vi.spyOn(RuleTable.prototype, 'expiresAt')
    for (let i = 0; i < 10_000; i++) limiter.consumeSync(`new${i}`)
    // All 5,000 once, then a few per new key. Inspecting 1,024 buckets per new key would be ten million.
    expect(looks.mock.calls.length).toBeLessThan(400_000)
    looks.mockRestore()
  })

  it('evicts full buckets before used ones among many keys', () => {
    const { clock, limiter } = limited(10_000, 10)
    for (let i = 0; i < 4_000; i++) limiter.consumeSync(`used${i}`, 9)
    for (let i = 0; i < 1_000; i++) limiter.consumeSync(`rejecting${i}`, 10)
    for (let i = 0; i < 5_000; i++) limiter.consumeSync(`full${i}`)
    clock.advance(1_000)
    for (let i = 0; i < 1_000; i++) limiter.consumeSync(`rejecting${i}`)
    for (let i = 0; i < 4_000; i++) limiter.consumeSync(`new${i}`, 5)
    // One second has refilled one permit of the used and the rejecting buckets.
    const evicted = Array.from({ length: 4_000 }, (_, i) => limiter.consumeSync(`used${i}`, 3).allowed)
    expect(evicted.filter(Boolean).length).toBeLessThanOrEqual(5)
    for (let i = 0; i < 1_000; i++) expect(limiter.consumeSync(`rejecting${i}`).allowed).toBe(false)
  })

  it('removes expired buckets without a timer', () => {
    const { clock, store, limiter } = limited(1_000_000, 10)
    for (let i = 0; i < 10_000; i++) limiter.consumeSync(`old${i}`)
    clock.advance(61_000)
    for (let i = 0; i < 10_000; i++) limiter.consumeSync(`new${i}`)
    expect(store.size).toBeLessThanOrEqual(10_000)
  })

  it('shares the bound among rules and evicts buckets of unused rules', () => {
    const clock = manualClock(start)
    const store = memoryStore({ maxKeys: 50, clock })
    for (let rule = 0; rule < 20; rule++) {
      const limiter = createLimiter({ id: `rule${rule}`, capacity: 10, window: '10s', store, clock })
      for (let i = 0; i < 20; i++) limiter.consumeSync(`key${i}`)
      expect(store.size).toBeLessThanOrEqual(50)
    }
  })

  it.each([{ maxkeys: 10 }, { max: 10 }, null, 10])('rejects %j as options', (options) => {
    expect(() => memoryStore(options as object)).toThrow(expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID' }))
  })

  it.each([0, -1, 1.5, 2 ** 24 + 1, Number.NaN])('rejects maxKeys %s', (maxKeys) => {
    expect(() => memoryStore({ maxKeys })).toThrow(/maxKeys/)
  })
})
