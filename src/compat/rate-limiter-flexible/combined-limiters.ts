import { type ActionOptions, type CompatibleLimiter, isCompatible } from './limiter-base.js'
import { RateLimiterRes } from './result.js'

/** Several limits that must all allow an action. Results are objects by key prefix. */
export class RateLimiterUnion {
  readonly #limiters: readonly CompatibleLimiter[]

  constructor(...limiters: CompatibleLimiter[]) {
    if (limiters.length === 0) throw new Error('RateLimiterUnion requires at least one limiter.')
    if (!limiters.every(isCompatible))
      throw new Error('RateLimiterUnion requires limiters of this module, or of RateLimiterCompatibleAbstract.')
    this.#limiters = limiters
  }

  /** Consumes points of all limits. Rejects with the results of the limits that reject. */
  async consume(key: string | number, points = 1): Promise<Record<string, RateLimiterRes>> {
    const settled = await Promise.allSettled(this.#limiters.map((limiter) => limiter.consume(key, points)))
    const allowed: Record<string, RateLimiterRes> = {}
    const rejected: Record<string, RateLimiterRes> = {}
    for (const [index, one] of settled.entries()) {
      const prefix = (this.#limiters[index] as CompatibleLimiter).keyPrefix
      if (one.status === 'fulfilled') allowed[prefix] = one.value
      else rejected[prefix] = one.reason
    }
    if (Object.keys(rejected).length > 0) throw rejected
    return allowed
  }
}

type Consuming = Pick<CompatibleLimiter, 'consume' | 'get'> & { readonly points: number }

/** A limit with a second one for bursts, which is used when the first is exceeded. */
export class BurstyRateLimiter {
  readonly #limiter: Consuming
  readonly #burst: Pick<CompatibleLimiter, 'consume' | 'get'>

  constructor(limiter: Consuming, burst: Pick<CompatibleLimiter, 'consume' | 'get'>) {
    this.#limiter = limiter
    this.#burst = burst
  }

  /** The points of the first limit. */
  get points(): number {
    return this.#limiter.points
  }

  /** Consumes points of the first limit, or of the second one if the first is exceeded. */
  async consume(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    try {
      return await this.#limiter.consume(key, points, options)
    } catch (rejected) {
      if (!(rejected instanceof RateLimiterRes)) throw rejected
      try {
        return combined(rejected, await this.#burst.consume(key, points, options))
      } catch (burst) {
        throw burst instanceof RateLimiterRes ? combined(rejected, burst) : burst
      }
    }
  }

  /** Returns the state of a key in the first limit, or null. */
  async get(key: string | number): Promise<RateLimiterRes | null> {
    const [result, burst] = await Promise.all([this.#limiter.get(key), this.#burst.get(key)])
    return result === null ? null : combined(result, burst)
  }
}

const combined = (result: RateLimiterRes, burst: RateLimiterRes | null): RateLimiterRes =>
  new RateLimiterRes(
    result.remainingPoints,
    Math.min(result.msBeforeNext, burst?.msBeforeNext ?? 0),
    result.consumedPoints,
    result.isFirstInDuration,
  )
