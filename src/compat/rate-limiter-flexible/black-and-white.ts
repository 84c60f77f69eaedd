import { type ActionOptions, type CompatibleLimiter, RateLimiterCompatibleAbstract } from './limiter-base.js'
import { RateLimiterRes } from './result.js'

/** Decides whether a key is on a list. */
export type ListedPredicate = (key: string | number) => boolean

/** Options of `RLWrapperBlackAndWhite`. */
export interface BlackAndWhiteOptions {
  /** The limiter of all other keys. */
  limiter: CompatibleLimiter
  /** Keys that are always rejected. */
  blackList?: readonly (string | number)[] | undefined
  /** Keys that are always allowed. */
  whiteList?: readonly (string | number)[] | undefined
  /** Returns true for keys that are always rejected, in addition to `blackList`. */
  isBlackListed?: ListedPredicate | undefined
  /** Returns true for keys that are always allowed, in addition to `whiteList`. */
  isWhiteListed?: ListedPredicate | undefined
  /** Counts the actions of listed keys too. Default false. */
  runActionAnyway?: boolean | undefined
}

const never: ListedPredicate = () => false

/** A limiter with keys that are always allowed or always rejected. */
export class RLWrapperBlackAndWhite extends RateLimiterCompatibleAbstract {
  /** The limiter of all other keys. */
  readonly limiter: CompatibleLimiter
  /** Keys that are always rejected. */
  readonly blackList: readonly (string | number)[]
  /** Keys that are always allowed. */
  readonly whiteList: readonly (string | number)[]
  /** Returns true for keys that are always rejected, in addition to `blackList`. */
  readonly isBlackListed: ListedPredicate
  /** Returns true for keys that are always allowed, in addition to `whiteList`. */
  readonly isWhiteListed: ListedPredicate
  /** True if the actions of listed keys are counted too. */
  readonly runActionAnyway: boolean

  constructor(options: BlackAndWhiteOptions) {
    super()
    const { limiter, blackList, whiteList, isBlackListed = never, isWhiteListed = never, runActionAnyway } = options
    if (limiter === undefined) throw new Error('limiter is missing. Pass the limiter to wrap.')
    for (const [name, predicate] of Object.entries({ isBlackListed, isWhiteListed }))
      if (typeof predicate !== 'function') throw new Error(`${name} must be a function; received ${typeof predicate}.`)
    this.limiter = limiter
    this.blackList = Array.isArray(blackList) ? blackList : []
    this.whiteList = Array.isArray(whiteList) ? whiteList : []
    this.isBlackListed = isBlackListed
    this.isWhiteListed = isWhiteListed
    this.runActionAnyway = runActionAnyway ?? false
  }

  get keyPrefix(): string {
    return this.limiter.keyPrefix
  }
  get blockDuration(): number {
    return this.limiter.blockDuration
  }
  set blockDuration(value: number) {
    this.limiter.blockDuration = value
  }
  get execEvenly(): boolean {
    return this.limiter.execEvenly
  }
  set execEvenly(value: boolean) {
    this.limiter.execEvenly = value
  }

  consume(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    return this.#run(key, () => this.limiter.consume(key, points, options), true)
  }
  penalty(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    return this.#run(key, () => this.limiter.penalty(key, points, options))
  }
  reward(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    return this.#run(key, () => this.limiter.reward(key, points, options))
  }
  async get(key: string | number, options?: ActionOptions): Promise<RateLimiterRes | null> {
    const get = () => this.limiter.get(key, options)
    return this.runActionAnyway ? get() : this.#run(key, get)
  }
  set(key: string | number, points: number, secDuration: number, options?: ActionOptions): Promise<RateLimiterRes> {
    return this.#run(key, () => this.limiter.set(key, points, secDuration, options))
  }
  block(key: string | number, secDuration: number, options?: ActionOptions): Promise<RateLimiterRes> {
    return this.#run(key, () => this.limiter.block(key, secDuration, options))
  }
  delete(key: string | number, options?: ActionOptions): Promise<boolean> {
    return this.limiter.delete(key, options)
  }

  /** Runs an action unless the key is on a list. A key that is on both is allowed. */
  async #run<T>(key: string | number, action: () => Promise<T>, rejects = false): Promise<T | RateLimiterRes> {
    const isWhite = this.whiteList.includes(key) || this.isWhiteListed(key)
    if (!isWhite && !this.blackList.includes(key) && !this.isBlackListed(key)) return action()
    // The result of a listed key does not depend on the action, so its errors are ignored.
    if (this.runActionAnyway) action().catch(() => {})
    if (isWhite) return new RateLimiterRes(Number.MAX_SAFE_INTEGER, 0, 0, false)
    const black = new RateLimiterRes(0, Number.MAX_SAFE_INTEGER, 0, false)
    if (rejects) throw black
    return black
  }
}
