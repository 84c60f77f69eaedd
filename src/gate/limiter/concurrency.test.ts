import { afterEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { createLimiter, type Limiter, type LimiterOptions } from './create-limiter.js'

const opened: Limiter[] = []
afterEach(async () => {
  for (const limiter of opened.splice(0)) await limiter.close()
})

function limiterOf(options: Partial<LimiterOptions> = {}) {
  const clock = manualClock(1_800_000_000_000)
  const limiter = createLimiter({
    algorithm: 'CONCURRENCY',
    capacity: 2,
    maxHold: '60s',
    clock,
    ...options,
  } as LimiterOptions)
  opened.push(limiter)
  return { limiter, clock }
}

describe('a limiter of requests in progress', () => {
  it('allows as many holds as its capacity, and another one after a release', async () => {
    const { limiter } = limiterOf()
    const first = await limiter.acquire('a')
    const second = await limiter.acquire('a')
    expect([first.decision.remaining, second.decision.remaining]).toEqual([1, 0])
    const third = await limiter.acquire('a')
    expect(third.decision).toMatchObject({ allowed: false, reason: 'LIMITED', retryAfterMs: 60_000, remaining: 0 })
    expect(third.decision.holdId).toBeUndefined()
    expect(third.decision.bands[0]?.windowMs).toBe(0)
    expect(await first.release()).toBe(true)
    expect((await limiter.acquire('a')).decision.allowed).toBe(true)
  })

  it('releases once: further calls return the first result and free nothing else', async () => {
    const { limiter } = limiterOf({ capacity: 1 })
    const first = await limiter.acquire('a')
    expect(await first.release()).toBe(true)
    const second = await limiter.acquire('a')
    expect(await first.release()).toBe(true)
    expect(await limiter.release(first.decision.holdId as string)).toBe(false)
    expect((await limiter.peek('a')).allowed).toBe(false)
    expect(await second.release()).toBe(true)
  })

  it('occupies nothing with 0 permits', async () => {
    const { limiter } = limiterOf({ capacity: 1 })
    const { decision, release } = await limiter.acquire('a', 0)
    expect(decision).toMatchObject({ allowed: true, remaining: 1 })
    expect(decision.holdId).toBeUndefined()
    expect(await release()).toBe(false)
  })

  it('frees the slot of a hold that is neither released nor renewed after maxHold', async () => {
    const { limiter, clock } = limiterOf({ capacity: 1, maxHold: '5s' })
    const { holdId = '' } = await limiter.consume('a')
    clock.advance(4_999)
    expect((await limiter.peek('a')).retryAfterMs).toBe(1)
    clock.advance(1)
    expect((await limiter.peek('a')).allowed).toBe(true)
    expect(await limiter.renew(holdId)).toBe(false)
    expect(await limiter.release(holdId)).toBe(false)
  })

  it('extends a hold by maxHold from the time of the renewal', async () => {
    const { limiter, clock } = limiterOf({ capacity: 1, maxHold: '5s' })
    const { holdId = '' } = await limiter.consume('a')
    clock.advance(4_000)
    expect(await limiter.renew(holdId)).toBe(true)
    clock.advance(4_999)
    expect((await limiter.peek('a')).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.peek('a')).allowed).toBe(true)
  })

  it('renews holds by itself while work is in progress', async () => {
    const limiter = createLimiter({ algorithm: 'CONCURRENCY', capacity: 1, maxHold: '1s' })
    opened.push(limiter)
    const { release } = await limiter.acquire('a')
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect((await limiter.peek('a')).allowed).toBe(false)
    expect(await release()).toBe(true)
    expect((await limiter.peek('a')).allowed).toBe(true)
  })

  it('runs a function while a slot is held, and releases it if the function fails', async () => {
    const { limiter } = limiterOf({ capacity: 1 })
    const run = await limiter.run('a', async () => (await limiter.run('a', () => 'inner')).ran)
    expect(run).toMatchObject({ ran: true, result: false })
    await expect(limiter.run('a', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
    expect((await limiter.peek('a')).allowed).toBe(true)
  })

  it('runs a function after the delay of its decision, in the slot that it has taken', async () => {
    const clock = manualClock(1_800_000_000_000)
    const bands = [
      { algorithm: 'CONCURRENCY', capacity: 2, maxHold: '60s' },
      { algorithm: 'LEAKY_BUCKET', capacity: 5, window: '5s' },
    ]
    const { run, peek, close } = createLimiter({ bands, clock } as LimiterOptions)
    const ranAt: number[] = []
    const runs = [1, 2].map(() => run('a', () => ranAt.push(clock.now() - 1_800_000_000_000)))
    await expect.poll(() => ranAt).toEqual([0])
    await expect.poll(async () => (await peek('a', 2)).allowed).toBe(false)
    clock.advance(999)
    await new Promise((resolve) => setImmediate(resolve))
    expect(ranAt).toEqual([0])
    clock.advance(1)
    expect((await Promise.all(runs)).every(({ ran }) => ran)).toBe(true)
    expect(ranAt).toEqual([0, 1_000])
    const waiting = run('a', () => 'done')
    const closed = expect(waiting).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
    await expect(run('a', 5 as never)).rejects.toThrow('fn must be a function; received 5.')
    await close()
    await closed
  })

  it('admits waiting requests in order when slots are released', async () => {
    const { limiter } = limiterOf({ capacity: 1, onLimitExceed: 'WAIT_FOR_REFILL' })
    const first = await limiter.acquire('a')
    const order: number[] = []
    const waiting = [1, 2, 3].map(async (number) => {
      const { decision, release } = await limiter.acquire('a')
      order.push(number)
      expect(decision.allowed).toBe(true)
      await release()
    })
    await first.release()
    await Promise.all(waiting)
    expect(order).toEqual([1, 2, 3])
  })

  it('rejects a waiting request after maxWaitMs, and an aborted one with the reason of its signal', async () => {
    const { limiter, clock } = limiterOf({ capacity: 1, onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 500 })
    await limiter.acquire('a')
    const late = limiter.acquire('a')
    clock.advance(500)
    expect((await late).decision).toMatchObject({ allowed: false, reason: 'LIMITED' })
    const aborting = new AbortController()
    const aborted = limiter.wait('a', { signal: aborting.signal })
    aborting.abort(new Error('left'))
    await expect(aborted).rejects.toThrow('left')
  })

  it('admits a waiting request when the oldest hold expires', async () => {
    const { limiter, clock } = limiterOf({ capacity: 1, maxHold: '2s' })
    await limiter.consume('a')
    const waiting = limiter.wait('a', { maxWaitMs: 5_000 })
    clock.advance(2_000)
    expect(await waiting).toMatchObject({ allowed: true, delayMs: 2_000 })
  })

  it('counts requests in progress and requests per minute in one decision', async () => {
    const { limiter } = limiterOf({
      capacity: undefined,
      maxHold: undefined,
      algorithm: 'TOKEN_BUCKET',
      bands: [
        { label: 'rate', capacity: 3, window: '1m' },
        { label: 'slots', algorithm: 'CONCURRENCY', capacity: 1 },
      ],
    } as unknown as LimiterOptions)
    const first = await limiter.acquire('a')
    const rejected = await limiter.acquire('a')
    expect(rejected.decision).toMatchObject({ allowed: false, band: 'slots' })
    expect(rejected.decision.bands.map(({ remaining }) => remaining)).toEqual([2, 0])
    await first.release()
    expect((await limiter.peek('a')).bands.map(({ remaining }) => remaining)).toEqual([1, 0])
  })

  it.each([
    [{ maxHold: '0s' }, 'maxHold: must be a duration'],
    [{ maxHold: 60 }, 'maxHold: must be a duration with a unit'],
    [{ window: '1m' }, 'window: must be omitted with CONCURRENCY'],
    [{ refillTokens: 5 }, 'refillTokens: must be omitted with CONCURRENCY'],
    [{ capacity: 10_001 }, 'capacity: must be at most 10000 with CONCURRENCY'],
    [{ consistency: 'LEASED' }, 'consistency: must be EXACT with CONCURRENCY'],
    [{ algorithm: 'FIXED_WINDOW', window: '1m' }, 'maxHold: must be omitted with FIXED_WINDOW'],
  ])('rejects %j', (fields, message) => {
    expect(() => limiterOf(fields as Partial<LimiterOptions>)).toThrow(message)
  })

  it.each(['', 'x', 'l0000.x', 7])('rejects an invalid hold id: %j', async (holdId) => {
    const { limiter } = limiterOf()
    await expect(limiter.release(holdId as string)).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
  })
})
