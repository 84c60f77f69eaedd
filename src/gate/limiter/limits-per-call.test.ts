import { describe, expect, it } from 'vitest'
import { algorithmNames } from '../../core/rule.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createLimiter } from './create-limiter.js'

const start = 1_800_000_000_000
const rateAlgorithms = algorithmNames.filter((name) => name !== 'CONCURRENCY')

describe('capacity 0', () => {
  it.each(rateAlgorithms)('rejects every request for ever: %s', async (algorithm) => {
    const limiter = createLimiter({ algorithm, capacity: 0, window: '1m', clock: manualClock(start) })
    const rejected = { allowed: false, reason: 'IMPOSSIBLE', retryAfterMs: null, limit: 0, remaining: 0 }
    expect(limiter.consumeSync('a')).toMatchObject(rejected)
    expect(await limiter.consume('a', { partial: true })).toMatchObject({ ...rejected, granted: 0 })
    expect(await limiter.consume('a', { permits: 5, force: true })).toMatchObject({ allowed: true, remaining: 0 })
    expect(await limiter.state('a')).toMatchObject({ limit: 0, remaining: 0, resetAt: expect.any(Number) })
    await limiter.close()
  })
})

describe('0 permits', () => {
  it.each(rateAlgorithms)('return the current state and change nothing: %s', async (algorithm) => {
    const clock = manualClock(start)
    const store = memoryStore({ clock })
    const limiter = createLimiter({ algorithm, capacity: 3, window: '1m', store })
    expect(await limiter.consume('a', 0)).toMatchObject({ allowed: true, remaining: 3, retryAfterMs: 0 })
    expect(store.size).toBe(0)
    for (let i = 0; i < 3; i++) limiter.consumeSync('a')
    const state = limiter.consumeSync('a', 0)
    expect(state).toMatchObject({ allowed: true, remaining: 0, delayMs: 0 })
    expect(await limiter.state('a')).toEqual(state)
    expect(await limiter.consume('a', { permits: 0, force: true })).toEqual(state)
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false })
    await limiter.close()
  })
})

describe('bands of a call', () => {
  it('do not make the store forget what the rule has counted', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 10, window: '1d', clock })
    limiter.consumeSync('a', 10)
    clock.advance(5)
    expect(limiter.consumeSync('a', { bands: [{ capacity: 4, window: '1ms' }] })).toMatchObject({ remaining: 3 })
    // New keys make the store remove unused ones.
    clock.advance(120_000)
    for (let i = 0; i < 10; i++) limiter.consumeSync(`b${i}`, { bands: [{ capacity: 4, window: '1ms' }] })
    expect(limiter.consumeSync('a', 0)).toMatchObject({ remaining: 3 })
  })

  it('apply to the same buckets', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ algorithm: 'FIXED_WINDOW', capacity: 2, window: '1m', clock })
    for (let i = 0; i < 2; i++) expect(limiter.consumeSync('a').allowed).toBe(true)
    expect(limiter.consumeSync('a').allowed).toBe(false)
    expect(limiter.consumeSync('a', { bands: [{ capacity: 10 }] })).toMatchObject({
      allowed: true,
      limit: 10,
      remaining: 7,
      band: '2-per-1m',
    })
    expect(await limiter.consume('a', { permits: 5, bands: [{ capacity: 5 }] })).toMatchObject({ allowed: false })
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false, limit: 2, remaining: 0 })
    await limiter.close()
  })

  it('belong to bands of the rule by label, otherwise by position, and inherit window and algorithm', async () => {
    const bands = [
      { label: 'second', capacity: 5, window: '1s' },
      { label: 'day', capacity: 100, window: '1d', algorithm: 'FIXED_WINDOW' },
    ]
    const limiter = createLimiter({ bands, clock: manualClock(start) })
    const { bands: states } = limiter.consumeSync('a', {
      bands: [
        { label: 'day', capacity: 50 },
        { label: 'second', capacity: 7 },
      ],
    })
    expect(states).toMatchObject([
      { label: 'day', limit: 50, remaining: 49, windowMs: 86_400_000 },
      { label: 'second', limit: 7, remaining: 6, windowMs: 1_000 },
    ])
    expect(limiter.consumeSync('a').bands).toMatchObject([
      { label: 'second', remaining: 4 },
      { label: 'day', remaining: 98 },
    ])
    expect(() => limiter.consumeSync('a', { bands: [{ label: 'day', capacity: 50 }, { capacity: 7 }] })).toThrow(
      /must be unique in the rule; received "day"/,
    )
    await limiter.close()
  })

  it('are validated, and name the place', () => {
    const limiter = createLimiter({ capacity: 2, window: '1m' })
    expect(() => limiter.consumeSync('a', { bands: [{ capacity: -1 }] })).toThrow(
      /bands\[0\]\.capacity: must be an integer from 0 to 1000000000; received -1/,
    )
    expect(() => limiter.consumeSync('a', { bands: [{ label: 'minutes', capacity: 3 }] })).toThrow(
      /bands\[0\]\.label: must be the label of a band of the rule \(2-per-1m\), unless the band has a window; received "minutes"/,
    )
    expect(() => limiter.consumeSync('a', { bands: [] })).toThrow(/bands: must be a list of 1 to 8 bands/)
    expect(() => limiter.consumeSync('a', { limit: 3 } as object)).toThrow(/limit/)
    expect(() => limiter.consumeSync('a', { partial: true, force: true })).toThrow(/must not be combined/)
  })
})

describe('partial', () => {
  it('takes as many permits as fit and returns their number', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 6, window: '1m', clock })
    expect(limiter.consumeSync('a', { permits: 4, partial: true })).toMatchObject({ granted: 4, remaining: 2 })
    expect(await limiter.consume('a', { permits: 10, partial: true })).toMatchObject({
      allowed: true,
      granted: 2,
      remaining: 0,
    })
    const rejected = limiter.consumeSync('a', { permits: 10, partial: true })
    expect(rejected).toMatchObject({ allowed: false, granted: 0, retryAfterMs: 10_000, reason: 'LIMITED' })
    clock.advance(9_999)
    expect(limiter.consumeSync('a', { permits: 10, partial: true })).toMatchObject({ allowed: false })
    clock.advance(1)
    expect(limiter.consumeSync('a', { permits: 10, partial: true })).toMatchObject({ allowed: true, granted: 1 })
    await limiter.close()
  })

  it('takes whole requests of a rule whose requests cost several permits', () => {
    const limiter = createLimiter({ capacity: 7, permits: 3, window: '1m' })
    expect(limiter.consumeSync('a', { permits: 5, partial: true })).toMatchObject({ granted: 2, remaining: 1 })
  })

  it('of 0 permits grants none and returns the current state', async () => {
    const limiter = createLimiter({ capacity: 2, window: '1m' })
    const state = { allowed: true, granted: 0, remaining: 2 }
    expect(limiter.consumeSync('a', { permits: 0, partial: true })).toMatchObject(state)
    expect(await limiter.consume('a', { permits: 0, partial: true })).toMatchObject(state)
    await limiter.close()
  })
})

describe('force', () => {
  it('charges a token bucket into debt of at most one capacity, which refill pays', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 10, window: '10s', clock })
    limiter.consumeSync('a', 8)
    expect(limiter.consumeSync('a', { permits: 5, force: true })).toMatchObject({
      allowed: true,
      remaining: 0,
      resetAt: start + 13_000,
    })
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false, retryAfterMs: 4_000 })
    expect(limiter.consumeSync('a', { permits: 1_000, force: true })).toMatchObject({ resetAt: start + 20_000 })
    clock.advance(10_999)
    expect(limiter.consumeSync('a').allowed).toBe(false)
    clock.advance(1)
    expect(limiter.consumeSync('a').allowed).toBe(true)
  })

  it.each([
    ['FIXED_WINDOW', 10_000],
    ['SLIDING_WINDOW_LOG', 10_000],
    ['LEAKY_BUCKET', 11_000],
    // 20 of the last window fade to 9 within 5.5 s of the next one.
    ['SLIDING_WINDOW_COUNTER', 15_500],
  ] as const)('rejects until the debt is paid: %s', (algorithm, retryAfterMs) => {
    const clock = manualClock(start)
    const limiter = createLimiter({ algorithm, capacity: 10, window: '10s', clock })
    limiter.consumeSync('a', { permits: 1_000, force: true })
    expect(limiter.consumeSync('a', 0)).toMatchObject({ remaining: 0 })
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false, retryAfterMs })
    clock.advance(retryAfterMs - 1)
    expect(limiter.consumeSync('a').allowed).toBe(false)
    clock.advance(1)
    expect(limiter.consumeSync('a').allowed).toBe(true)
  })
})

describe('resetAll', () => {
  it('resets all keys of the limiter, and no others', async () => {
    const store = memoryStore()
    const limiter = createLimiter({ capacity: 1, window: '1h', store })
    const other = createLimiter({ id: 'other', capacity: 1, window: '1h', store })
    for (const key of ['a', 'b']) limiter.consumeSync(key)
    other.consumeSync('a')
    await limiter.resetAll()
    expect([limiter.consumeSync('a'), limiter.consumeSync('b')]).toMatchObject([{ allowed: true }, { allowed: true }])
    expect(other.consumeSync('a').allowed).toBe(false)
  })
})

describe('CONCURRENCY', () => {
  it('rejects every request with capacity 0, and has no bands of a call, partial or forced charges', async () => {
    const none = createLimiter({ algorithm: 'CONCURRENCY', capacity: 0 })
    expect(await none.consume('a')).toMatchObject({ allowed: false, reason: 'IMPOSSIBLE', retryAfterMs: null })
    const limiter = createLimiter({ algorithm: 'CONCURRENCY', capacity: 2 })
    for (const options of [{ force: true }, { partial: true }, { bands: [{ capacity: 5 }] }])
      await expect(limiter.consume('a', options)).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
    expect(await limiter.state('a')).toMatchObject({ remaining: 2 })
    await Promise.all([none.close(), limiter.close()])
  })
})
