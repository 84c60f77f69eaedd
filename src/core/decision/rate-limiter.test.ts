import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { band, chargeOf, group } from '../../testing/fixtures.js'
import type { BucketStore, ChargeResult } from '../bucket-store.js'
import { systemClock } from '../clock.js'
import type { Decision } from '../decision.js'
import { decorateStore } from '../decorate-store.js'
import { WaitingRoom } from '../waiting/waiting-room.js'
import { RateLimiter, type RateLimiterOptions } from './rate-limiter.js'

const charges = [chargeOf(group('rule', [band({ capacity: 10 })]), 'a')]

/** A limiter over a remote store that can decide locally. */
function limiterOver(canDecide: boolean) {
  const buckets = memoryStore()
  const store: BucketStore = decorateStore(buckets, {
    chargeLocally: (tried) => (canDecide ? buckets.chargeSync(tried, false) : undefined),
  })
  return new RateLimiter(store, new WaitingRoom(1, systemClock))
}

it('decides at once if the store needs no call', () => {
  const decision = limiterOver(true).decide('set', charges)
  expect(decision).toMatchObject({ allowed: true, remaining: 9, ruleId: 'rule', degraded: false })
})

it('calls the store if it cannot decide locally, and for peeks, signals and ordered waits', async () => {
  expect(limiterOver(false).decide('set', charges)).toBeInstanceOf(Promise)
  const limiter = limiterOver(true)
  for (const options of [{ peek: true }, { signal: new AbortController().signal }, { onLeave: () => {} }])
    expect(await limiter.decide('set', charges, options)).toMatchObject({ allowed: true })
  const aborted = limiter.decide('set', charges, { signal: AbortSignal.abort(new Error('gone')) })
  await expect(aborted).rejects.toThrow('gone')
  // Two of the three calls charged the bucket.
  expect(limiter.decide('set', charges)).toMatchObject({ remaining: 7 })
})

describe.each<[string, () => Promise<ChargeResult>]>([
  ['throws', () => expect.unreachable('broken')],
  ['rejects', () => Promise.reject(new Error('broken'))],
  ['returns a result without bands', async () => ({ granted: true, now: 0, bands: [] })],
])('a remote store that %s', (_, charge) => {
  const limiterWith = (options: RateLimiterOptions) =>
    new RateLimiter(decorateStore(memoryStore(), { charge }), new WaitingRoom(1, systemClock), options)

  it('is replaced by the fallback, if there is one', async () => {
    const degraded = new RateLimiter(memoryStore(), new WaitingRoom(1, systemClock), { degraded: true })
    const fallback = { decide: () => degraded.decide('set', charges) as Decision }
    for (const options of [{}, { signal: new AbortController().signal }])
      expect(await limiterWith({ fallback }).decide('set', charges, options)).toMatchObject({ degraded: true })
  })

  it('otherwise makes the decision reject', async () => {
    for (const options of [{}, { signal: new AbortController().signal }])
      await expect(limiterWith({}).decide('set', charges, options)).rejects.toThrow()
  })
})
