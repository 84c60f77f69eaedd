import { describe, expect, it } from 'vitest'
import { algorithmNames } from '../../core/rule.js'
import { seededRandom } from '../../core/seeded-random.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createLimiter } from './create-limiter.js'

/** concurrency.test.ts has the tests of CONCURRENCY, which has no window. */
const rateAlgorithms = algorithmNames.filter((name) => name !== 'CONCURRENCY')

const start = 1_800_000_000_000

describe('exactness', () => {
  it('allows 10/s to a client at 11/s, plus the initial burst', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 10, window: '1s', clock })
    let admitted = 0
    for (let i = 0; i < 1100; i++) {
      if (limiter.consumeSync('a').allowed) admitted += 1
      clock.advance(1000 / 11)
    }
    expect(admitted).toBe(1009)
  })

  it('never rejects an uneven client at 96 per minute under 100 per minute', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 100, window: '1m', clock })
    for (let minute = 0; minute < 60; minute++) {
      for (const pause of [0, 0, 0, 700, 1, 1999, 3, 297]) {
        for (let i = 0; i < 12; i++) expect(limiter.consumeSync('a').allowed).toBe(true)
        clock.advance(pause)
      }
      clock.advance(57_000)
    }
  })

  it('decides Poisson arrivals at 900/s under 1000/s exactly like a real-valued bucket', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1000, window: '1s', clock })
    const random = seededRandom(7)
    let level = 1000n * 1_000_000n
    for (let i = 0; i < 20_000; i++) {
      const pause = Math.round((-Math.log(1 - random()) / 900) * 1_000_000)
      clock.advance(pause / 1000)
      level += BigInt(pause) * 1000n
      if (level > 1000n * 1_000_000n) level = 1000n * 1_000_000n
      const admits = level >= 1_000_000n
      if (admits) level -= 1_000_000n
      expect(limiter.consumeSync('shared').allowed).toBe(admits)
    }
  })

  it('charges the hourly band only for the 5 of 100 requests that the band of 5/s allows', async () => {
    const clock = manualClock(start)
    const bands = [
      { label: 'hour', capacity: 100, window: '1h' },
      { label: 'second', capacity: 5, window: '1s' },
    ]
    const limiter = createLimiter({ bands, clock })
    const decisions = Array.from({ length: 100 }, () => limiter.consumeSync('a'))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(5)
    const hour = (await limiter.peek('a')).bands.find(({ label }) => label === 'hour')
    expect(hour).toMatchObject({ remaining: 95, allowed: true, retryAfterMs: 0 })
    expect(decisions[99]).toMatchObject({
      reason: 'LIMITED',
      band: 'second',
      limit: 5,
      remaining: 0,
      retryAfterMs: 200,
    })
  })

  it.each([[['1h', '1s']], [['1s', '1h']]])('keeps two unlabelled bands separate, in the order %s', async (windows) => {
    const clock = manualClock(start)
    const limiter = createLimiter({ bands: windows.map((window) => ({ capacity: 10, window })), clock })
    for (let i = 0; i < 10; i++) expect(limiter.consumeSync('a').allowed).toBe(true)
    clock.advance(1000)
    const { bands } = await limiter.peek('a')
    expect(Object.fromEntries(bands.map(({ windowMs, remaining }) => [windowMs, remaining]))).toEqual({
      1000: 10,
      3600000: 0,
    })
  })

  it('allows 1000 per 30 days on the first day and 1000 more over 30 days of refill', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1000, window: '30d', clock })
    let [firstDay, rest] = [0, 0]
    for (let hour = 0; hour < 31 * 24; hour++) {
      for (let i = 0; i < 2000; i++) if (limiter.consumeSync('a').allowed) hour < 24 ? firstDay++ : rest++
      clock.advance(3_600_000)
    }
    expect(firstDay).toBe(1000 + Math.floor((1000 * 23) / 720))
    expect(firstDay + rest).toBe(1000 + Math.floor((1000 * 743) / 720))
  })

  it('supports windows of half a second and of 366 days', () => {
    const clock = manualClock(start)
    const half = createLimiter({ capacity: 3, windowSeconds: 0.5, clock })
    for (let i = 0; i < 3; i++) half.consumeSync('a')
    expect(half.consumeSync('a')).toMatchObject({ allowed: false, retryAfterMs: 167, resetAt: start + 500 })
    const year = createLimiter({ capacity: 1, window: '366d', clock })
    year.consumeSync('a')
    expect(year.consumeSync('a')).toMatchObject({ allowed: false, retryAfterMs: 31_622_400_000 })
    clock.advance(31_622_399_999)
    expect(year.consumeSync('a').allowed).toBe(false)
    clock.advance(1)
    expect(year.consumeSync('a').allowed).toBe(true)
  })
})

describe('decision fields', () => {
  it('are complete for an allowed request', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ id: 'reads', capacity: 10, window: '1m', clock })
    expect(limiter.consumeSync('a', 4)).toEqual({
      allowed: true,
      delayMs: 0,
      reason: 'ALLOWED',
      ruleSetId: 'limiter',
      ruleId: 'reads',
      band: '10-per-1m',
      key: 'a',
      limit: 10,
      remaining: 6,
      retryAfterMs: 0,
      resetAt: start + 24_000,
      decidedAt: start,
      policy: 'REJECT',
      degraded: false,
      bands: [
        {
          ruleId: 'reads',
          label: '10-per-1m',
          key: 'a',
          limit: 10,
          remaining: 6,
          resetAt: start + 24_000,
          retryAfterMs: 0,
          allowed: true,
          shadow: false,
          windowMs: 60_000,
        },
      ],
    })
  })

  it('contain an exact retryAfterMs for a rejected request', async () => {
    const clock = manualClock(0)
    const limiter = createLimiter({ capacity: 10, window: '1m', clock })
    await limiter.consume('a', 10)
    clock.advance(500)
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 5_500 })
    clock.advance(5_499)
    expect((await limiter.consume('a')).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.consume('a')).allowed).toBe(true)
  })

  it.each(rateAlgorithms)('%s: rejects one millisecond before retryAfterMs, allows at it', (algorithm) => {
    const clock = manualClock(start + 0.123)
    const limiter = createLimiter({ algorithm, capacity: 7, window: '3s', clock })
    while (limiter.consumeSync('a', 2).allowed) clock.advance(17.001)
    const { retryAfterMs } = limiter.consumeSync('a', 2)
    clock.advance((retryAfterMs ?? 0) - 1)
    expect(limiter.consumeSync('a', 2).allowed).toBe(false)
    clock.advance(1)
    expect(limiter.consumeSync('a', 2).allowed).toBe(true)
  })

  it.each(rateAlgorithms)('%s: 11 permits of a capacity of 10 are IMPOSSIBLE', (algorithm) => {
    const limiter = createLimiter({ algorithm, capacity: 10, window: '1s', clock: manualClock(start) })
    expect(limiter.consumeSync('a', 11)).toMatchObject({
      allowed: false,
      reason: 'IMPOSSIBLE',
      retryAfterMs: null,
      remaining: 10,
    })
    expect(limiter.consumeSync('a', 10).allowed).toBe(true)
  })

  it.each([
    ['TOKEN_BUCKET', start + 6_000],
    ['LEAKY_BUCKET', start + 6_000],
    ['FIXED_WINDOW', start + 60_000],
    ['SLIDING_WINDOW_COUNTER', start + 60_000],
    ['SLIDING_WINDOW_LOG', start + 60_000],
  ])('%s: resetAt is computed after the charge', (algorithm, resetAt) => {
    const limiter = createLimiter({ algorithm, capacity: 10, window: '1m', clock: manualClock(start) })
    expect(limiter.consumeSync('a').resetAt).toBe(resetAt)
  })

  it('multiply the requested permits by the permits of the rule', () => {
    const limiter = createLimiter({ capacity: 10, window: '1m', permits: 3, clock: manualClock(start) })
    expect(limiter.consumeSync('a', 2).remaining).toBe(4)
    expect(limiter.consumeSync('a', 2)).toMatchObject({ allowed: false, retryAfterMs: 12_000 })
  })
})

describe('consumeSync', () => {
  it('refunds a delayed request to its own key, whatever is consumed after it', async () => {
    const clock = manualClock(0)
    const store = memoryStore({ clock })
    const limit = { capacity: 2, window: '2s', onLimitExceed: 'WAIT_FOR_REFILL', store, clock } as const
    const limiter = createLimiter(limit)
    limiter.consumeSync('a', 2)
    const delayed = limiter.consumeSync('a')
    const other = limiter.consumeSync('b', 2)
    expect(delayed).toMatchObject({ allowed: true, delayMs: 1000, key: 'a', remaining: 0 })
    expect(other).toMatchObject({ allowed: true, delayMs: 0, key: 'b', remaining: 0 })
    await limiter.close()
    clock.advance(1000)
    const next = createLimiter(limit)
    expect(next.consumeSync('a')).toMatchObject({ delayMs: 0 })
    expect(next.consumeSync('b')).toMatchObject({ delayMs: 0 })
    expect(next.consumeSync('b')).toMatchObject({ delayMs: 1000 })
  })
})

describe('differences between algorithms', () => {
  it('a leaky bucket releases evenly, a token bucket does not, on the same arrivals', () => {
    const gaps = (algorithm: string): number[] => {
      const clock = manualClock(start)
      const limiter = createLimiter({ algorithm, capacity: 5, window: '1s', clock })
      const releases: number[] = []
      for (const pause of [0, 0, 0, 30, 0, 470, 0, 900, 0, 0]) {
        clock.advance(pause)
        const { allowed, delayMs } = limiter.consumeSync('a')
        if (allowed) releases.push(clock.now() + delayMs)
      }
      return releases.slice(1).map((at, i) => at - (releases[i] ?? 0))
    }
    expect(Math.min(...gaps('LEAKY_BUCKET'))).toBe(200)
    expect(Math.min(...gaps('TOKEN_BUCKET'))).toBe(0)
  })

  it('a leaky bucket of capacity 1 spaces requests', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ algorithm: 'leaky-bucket', capacity: 1, window: '100ms', clock })
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: true, delayMs: 0 })
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false, retryAfterMs: 100 })
    clock.advance(100)
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: true, delayMs: 0 })
  })

  it('a leaky bucket never releases closer than window/refill, even for fractions of a microsecond', () => {
    const limiter = createLimiter({ algorithm: 'LEAKY_BUCKET', capacity: 7, window: '1ms', clock: manualClock(start) })
    const delays = Array.from({ length: 7 }, () => limiter.consumeSync('a').delayMs)
    for (let i = 1; i < 7; i++) expect((delays[i] ?? 0) - (delays[i - 1] ?? 0)).toBeCloseTo(1 / 7, 12)
  })

  it('a sliding log counts every one of a thousand simultaneous requests', () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ algorithm: 'SLIDING_WINDOW_LOG', capacity: 1000, window: '1s', clock })
    for (let i = 0; i < 1000; i++) expect(limiter.consumeSync('a').allowed).toBe(true)
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false, retryAfterMs: 1000 })
  })

  it.each([
    ['FIXED_WINDOW', 200],
    ['SLIDING_WINDOW_LOG', 100],
    ['SLIDING_WINDOW_COUNTER', 100],
  ])('%s allows %i requests around a window boundary', (algorithm, passed) => {
    const clock = manualClock(start + 59_500)
    const limiter = createLimiter({ algorithm, capacity: 100, window: '1m', clock })
    const burst = (): number =>
      Array.from({ length: 100 }, () => limiter.consumeSync('a')).filter((d) => d.allowed).length
    const before = burst()
    clock.advance(1000)
    expect(before + burst()).toBe(passed)
  })

  it('INTERVAL refill adds all tokens at the end of an interval that starts with the first use', () => {
    const clock = manualClock(start + 123)
    const limiter = createLimiter({ capacity: 10, refillTokens: 4, window: '1s', refill: 'INTERVAL', clock })
    expect(limiter.consumeSync('a', 10).allowed).toBe(true)
    clock.advance(999)
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 1 })
    clock.advance(1)
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: true, remaining: 3, resetAt: start + 1123 + 2000 })
  })
})

describe('peek, refund and reset', () => {
  it('peek charges nothing', async () => {
    const limiter = createLimiter({ capacity: 2, window: '1m', clock: manualClock(start) })
    for (let i = 0; i < 5; i++) expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 1 })
    expect(await limiter.peek('a', 3)).toMatchObject({ allowed: false, reason: 'IMPOSSIBLE' })
  })

  it('refund returns permits up to the capacity', async () => {
    const limiter = createLimiter({ capacity: 5, window: '1m', clock: manualClock(start) })
    limiter.consumeSync('a', 5)
    await limiter.refund('a', 2)
    expect((await limiter.peek('a')).remaining).toBe(1)
    await limiter.refund('a', 100)
    expect((await limiter.peek('a')).remaining).toBe(4)
  })

  it('reset affects one key only', async () => {
    const limiter = createLimiter({ capacity: 1, window: '1m', clock: manualClock(start) })
    for (const key of ['a', 'b']) limiter.consumeSync(key)
    await limiter.reset('a')
    expect(limiter.consumeSync('a').allowed).toBe(true)
    expect(limiter.consumeSync('b').allowed).toBe(false)
  })
})

describe('a clock that steps back', () => {
  it.each(rateAlgorithms)('%s: an empty bucket rejects for at most its own window and refills once', (algorithm) => {
    const clock = manualClock(start)
    const limiter = createLimiter({ algorithm, capacity: 10, window: '1m', clock })
    for (let i = 0; i < 10; i++) limiter.consumeSync('a')
    clock.advance(-3_600_000)
    for (let i = 0; i < 10; i++) expect(limiter.consumeSync('a').allowed).toBe(false)
    let admitted = 0
    for (let second = 0; second < 120; second++) {
      clock.advance(1000)
      while (limiter.consumeSync('a').allowed) admitted += 1
    }
    expect(admitted).toBeGreaterThanOrEqual(algorithm === 'SLIDING_WINDOW_COUNTER' ? 9 : 10)
    expect(admitted).toBeLessThanOrEqual(20)
  })

  it('SLIDING_WINDOW_COUNTER: the previous window keeps its weight', () => {
    const clock = manualClock(start + 3_599_000)
    const limiter = createLimiter({ algorithm: 'SLIDING_WINDOW_COUNTER', capacity: 1000, window: '1h', clock })
    limiter.consumeSync('a', 1000)
    clock.advance(5000)
    while (limiter.consumeSync('a').allowed);
    clock.advance(-4500)
    expect(limiter.consumeSync('a').allowed).toBe(false)
  })
})

describe('invalid input throws and charges nothing', () => {
  const limiter = createLimiter({ capacity: 5, window: '1m', clock: manualClock(start) })

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '2' as never])('permits %s', async (permits) => {
    await expect(limiter.consume('a', permits)).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
    expect(() => limiter.consumeSync('a', permits)).toThrow(/integer from 0/)
    expect((await limiter.peek('a')).remaining).toBe(4)
  })

  it.each([-1, '2' as never, null as never])('permits %s in options', async (permits) => {
    await expect(limiter.consume('a', { permits })).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
    expect(() => limiter.consumeSync('a', { permits })).toThrow(/integer from 0/)
    expect((await limiter.peek('a')).remaining).toBe(4)
  })

  it.each(['', undefined as never, 7 as never])('key %s', async (key) => {
    await expect(limiter.consume(key)).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
  })

  it('a clock without now()', () => {
    for (const clock of [Date.now, {}, 5, null] as never[]) {
      const expected = expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID' })
      expect(() => createLimiter({ capacity: 1, window: '1s', clock })).toThrow(expected)
      expect(() => memoryStore({ clock })).toThrow(expected)
    }
    expect(createLimiter({ capacity: 1, window: '1s', clock: Date }).consumeSync('a').allowed).toBe(true)
  })

  it('a rule with several errors', () => {
    expect(() => createLimiter({ capacity: -1, window: 'soon', colour: 'red' } as never)).toThrow(
      expect.objectContaining({
        code: 'FLUXGATE_RULES_INVALID',
        errors: expect.arrayContaining([
          expect.objectContaining({ path: 'capacity' }),
          expect.objectContaining({ path: 'window' }),
          expect.objectContaining({ path: 'colour' }),
        ]),
      }),
    )
  })

  it('use after close', async () => {
    const closed = createLimiter({ capacity: 5, window: '1m' })
    await closed.close()
    await expect(closed.consume('a')).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
  })
})
