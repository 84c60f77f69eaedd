/** `capacity` and `bands` as functions of the request, in code that all middlewares share. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { EdgeRequest } from '../../http/edge-request.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createGuard, type RateLimitOptions } from './create-guard.js'

const request: EdgeRequest = {
  method: 'GET',
  url: '/',
  headers: {},
  remoteAddress: '192.0.2.1',
  signal: () => new AbortController().signal,
}

type Options = RateLimitOptions<number>

/** Returns a function that decides a request, for which `capacity` and `bands` receive a number. */
function limitOf(options: object) {
  const { guard, close } = createGuard<number, unknown>({ clock: manualClock(0), ...options } as unknown as Options)
  onTestFinished(close)
  return async (native: number) => {
    const outcome = await guard.admit(request, native)
    if (outcome.kind === 'ABORTED' || outcome.decision === undefined) throw new Error('The request was not counted.')
    return { ...outcome.decision, refund: 'refund' in outcome ? outcome.refund : undefined, outcome }
  }
}

describe('a capacity that depends on the request', () => {
  const capacity = (native: number) => native
  const fixed = { capacity, window: '1m', algorithm: 'FIXED_WINDOW' }

  it('is the limit of that request, on the bucket of the key', async () => {
    const decide = limitOf(fixed)
    expect(await decide(2)).toMatchObject({ allowed: true, limit: 2, remaining: 1, band: 'per-1m' })
    expect(await decide(10)).toMatchObject({ allowed: true, limit: 10, remaining: 8 })
    expect(await decide(2)).toMatchObject({ allowed: false, limit: 2, remaining: 0 })
  })

  it('refills by itself, or by refillTokens', async () => {
    const clock = manualClock(0)
    const decide = limitOf({ capacity, window: '1m', clock })
    const slow = limitOf({ capacity, window: '1m', refillTokens: 1, clock })
    for (let i = 0; i < 2; i++) for (const one of [decide, slow]) await one(2)
    expect((await decide(2)).retryAfterMs).toBe(30_000)
    expect((await slow(2)).retryAfterMs).toBe(60_000)
  })

  it('rejects every request with 0', async () => {
    expect(await limitOf(fixed)(0)).toMatchObject({ allowed: false, reason: 'IMPOSSIBLE', retryAfterMs: null })
  })

  it.each([undefined, null, '5', Number.POSITIVE_INFINITY, -1, 1.5])('must not be %s', async (given) => {
    await expect(limitOf({ ...fixed, capacity: () => given })(1)).rejects.toMatchObject({
      code: 'FLUXGATE_ARGUMENT_INVALID',
      message: expect.stringMatching(/^The result of capacity\(request\) must be an integer from 0 to 1000000000/),
    })
  })

  it('keeps the label of the options', async () => {
    expect(await limitOf({ ...fixed, label: 'plan' })(2)).toMatchObject({ band: 'plan' })
  })

  it('is refunded to the same bucket', async () => {
    const decide = limitOf({ ...fixed, countWhen: () => false })
    const first = await decide(1)
    expect((await decide(1)).allowed).toBe(false)
    first.refund?.()
    await vi.waitFor(async () => expect((await decide(1)).allowed).toBe(true))
  })

  it('runs after customize, and before the decision', async () => {
    const calls: string[] = []
    const decide = limitOf({
      ...fixed,
      limitScope: 'USER_ID',
      customize: async (context: object) => {
        calls.push('customize')
        return { ...context, userId: 'ann' }
      },
      capacity: (native: number) => {
        calls.push('capacity')
        return native
      },
    })
    expect(await decide(5)).toMatchObject({ key: 'ann', limit: 5 })
    expect(calls).toEqual(['customize', 'capacity'])
  })
})

describe('bands that depend on the request', () => {
  const bands = (native: number) => [
    { capacity: native, window: '1h' },
    { label: 'burst', capacity: 1, window: '1s' },
  ]

  it('are the limits of that request, and count by label', async () => {
    const clock = manualClock(0)
    const decide = limitOf({ bands, algorithm: 'FIXED_WINDOW', clock })
    expect((await decide(2)).bands).toMatchObject([
      { label: 'per-1h', limit: 2, remaining: 1 },
      { label: 'burst', remaining: 0 },
    ])
    clock.advance(1_000)
    expect((await decide(5)).bands).toMatchObject([{ remaining: 3 }, { remaining: 0 }])
    clock.advance(1_000)
    expect(await decide(2)).toMatchObject({ allowed: false, band: 'per-1h' })
  })

  it.each([
    [[], /bands: must be a list of 1 to 8 bands/],
    [undefined, /bands: must be a list of 1 to 8 bands/],
    [[{ capacity: 1 }], /bands\[0\]\.window/],
    [[{ capacity: 1, window: '1s', algorithm: 'CONCURRENCY' }], /window: must be omitted with CONCURRENCY/],
    [[{ capacity: 1, algorithm: 'CONCURRENCY' }], /must not return a band with the algorithm CONCURRENCY/],
    [[1, 2].map((capacity) => ({ capacity, window: '1s' })), /different labels; received two with per-1s/],
  ])('must not be %j', async (given, message) => {
    await expect(limitOf({ bands: () => given })(1)).rejects.toThrow(message)
  })
})

it.each<[object, string]>([
  [{ capacity: () => 1, algorithm: 'CONCURRENCY' }, 'algorithm: must not be CONCURRENCY if capacity is a function'],
  [{ capacity: () => 1, window: '1s', consistency: 'LEASED' }, 'consistency: must be EXACT if capacity is a function'],
  [{ bands: () => [], consistency: 'LEASED' }, 'consistency: must be EXACT if bands is a function'],
  [{ capacity: () => 1 }, 'window'],
  [{ capacity: () => 1, bands: [] }, 'capacity: must not be combined with bands'],
  [{ capacity: 1, window: () => '1s' }, 'window: must be a duration'],
])('an invalid limit of the request is an error at creation', (options, message) => {
  expect(() => createGuard(options as unknown as Options)).toThrow(message)
})
