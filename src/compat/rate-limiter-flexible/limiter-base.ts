import type { HitCounters, Hits } from '../counters/hit-counters.js'
import { RateLimiterRes } from './result.js'

/** Options of every limiter. Durations are in seconds. */
export interface RateLimiterOptions {
  /** The maximum number of points per duration. */
  points: number
  /** The length of a duration, which starts with the first action of a key. 0 means that points never return. */
  duration: number
  /** How long a key is blocked that consumed more than `points`. Default 0: until its duration ends. */
  blockDuration?: number | undefined
  /** Spreads the actions of a duration evenly by delaying them. */
  execEvenly?: boolean | undefined
  /** The minimum delay of `execEvenly`. Default: the duration divided by the points. */
  execEvenlyMinDelayMs?: number | undefined
  /** Prefix of the keys. Default `rlflx`. */
  keyPrefix?: string | undefined
}

/** Options of an action. */
export interface ActionOptions {
  /** Replaces the duration of the limiter, in seconds. */
  customDuration?: number | undefined
}

/** The operations that limiters and wrappers share. */
export interface CompatibleLimiter {
  /** Prefix of the keys. */
  readonly keyPrefix: string
  /** How long a key is blocked that consumed too many points, in seconds. 0: until its duration ends. */
  blockDuration: number
  /** True if the actions of a duration are delayed to spread them evenly. */
  execEvenly: boolean
  /** Consumes points. Rejects with a `RateLimiterRes` if there are not enough. */
  consume(key: string | number, points?: number, options?: ActionOptions): Promise<RateLimiterRes>
  /** Adds consumed points, also beyond the limit. */
  penalty(key: string | number, points?: number, options?: ActionOptions): Promise<RateLimiterRes>
  /** Returns consumed points. */
  reward(key: string | number, points?: number, options?: ActionOptions): Promise<RateLimiterRes>
  /** Returns the state of a key, or null if it has none. */
  get(key: string | number, options?: ActionOptions): Promise<RateLimiterRes | null>
  /** Sets the consumed points of a key, and starts a duration. */
  set(key: string | number, points: number, secDuration: number, options?: ActionOptions): Promise<RateLimiterRes>
  /** Blocks a key for some seconds; 0 means until `delete`. */
  block(key: string | number, secDuration: number, options?: ActionOptions): Promise<RateLimiterRes>
  /** Removes the state of a key. Resolves with false if it had none. */
  delete(key: string | number, options?: ActionOptions): Promise<boolean>
}

/** The base of the limiters: fixed windows that start with the first action, over any counters. */
export abstract class RateLimiterAbstract implements CompatibleLimiter {
  #points = 0
  #duration = 0
  #blockDuration = 0
  #execEvenly = false
  #execEvenlyMinDelayMs = 0
  #keyPrefix = 'rlflx'
  /** The counters of all keys, in this process or in Redis. */
  protected abstract get counters(): HitCounters

  constructor({ points, duration, blockDuration, execEvenly, execEvenlyMinDelayMs, keyPrefix }: RateLimiterOptions) {
    this.points = points
    this.duration = duration
    this.blockDuration = blockDuration ?? 0
    this.execEvenly = execEvenly ?? false
    this.execEvenlyMinDelayMs = execEvenlyMinDelayMs ?? Math.ceil(this.msDuration / points)
    this.keyPrefix = keyPrefix ?? 'rlflx'
  }

  /** The maximum number of points per duration. */
  get points(): number {
    return this.#points
  }
  set points(value: number) {
    if (!Number.isFinite(value)) throw new Error(`points must be a finite number; received ${String(value)}.`)
    this.#points = value
  }

  /** The length of a duration in seconds. 0 means that points never return. */
  get duration(): number {
    return this.#duration
  }
  set duration(value: number) {
    if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
      throw new Error(`duration must be a finite number of seconds of at least 0; received ${String(value)}.`)
    this.#duration = value
  }

  /** The duration in milliseconds. */
  get msDuration(): number {
    return this.#duration * 1000
  }

  get blockDuration(): number {
    return this.#blockDuration
  }
  set blockDuration(value: number | undefined) {
    this.#blockDuration = value ?? 0
  }

  /** A key is blocked when it consumes more than this. */
  protected get unblockedPoints(): number {
    return this.#points
  }

  /** The block duration in milliseconds. */
  get msBlockDuration(): number {
    return this.#blockDuration * 1000
  }

  get execEvenly(): boolean {
    return this.#execEvenly
  }
  set execEvenly(value: boolean | undefined) {
    this.#execEvenly = Boolean(value)
  }

  /** The minimum delay of `execEvenly`, in milliseconds. */
  get execEvenlyMinDelayMs(): number {
    return this.#execEvenlyMinDelayMs
  }
  set execEvenlyMinDelayMs(value: number) {
    this.#execEvenlyMinDelayMs = value
  }

  get keyPrefix(): string {
    return this.#keyPrefix
  }
  set keyPrefix(value: string) {
    if (typeof value !== 'string') throw new Error(`keyPrefix must be a string; received ${typeof value}.`)
    this.#keyPrefix = value
  }

  /** The key with its prefix, as it is stored. */
  getKey(key: string | number): string {
    return this.#keyPrefix === '' ? String(key) : `${this.#keyPrefix}:${key}`
  }

  /** The key without its prefix. */
  parseKey(storedKey: string): string {
    return this.#keyPrefix === '' ? storedKey : storedKey.slice(this.#keyPrefix.length + 1)
  }

  /** Consumes points. Rejects with a `RateLimiterRes` if there are not enough. */
  async consume(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    // Only the action that exceeds the points first blocks the key, so that later ones do not extend the block.
    const block =
      this.#blockDuration > 0
        ? ({ limit: this.unblockedPoints, ms: this.msBlockDuration, on: 'FIRST' } as const)
        : undefined
    const hits = await this.counters.add(this.getKey(key), points, this.#durationMs(options), block)
    const result = this.result(hits, points)
    if (result.consumedPoints > this.#points) throw result
    if (this.#execEvenly && this.#points > 0 && result.msBeforeNext > 0 && !result.isFirstInDuration)
      await this.#delay(result)
    return result
  }

  async #delay(result: RateLimiterRes): Promise<void> {
    const even = Math.ceil(result.msBeforeNext / (result.remainingPoints + 2))
    const isShort = even < this.#execEvenlyMinDelayMs
    const delayMs = isShort ? result.consumedPoints * this.#execEvenlyMinDelayMs : even
    result.msBeforeNext = Math.max(result.msBeforeNext - delayMs, 0)
    await new Promise((resolve) => setTimeout(resolve, delayMs))
  }

  /** Adds consumed points, also beyond the limit. Never rejects because of the limit. */
  async penalty(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    return this.result(await this.counters.add(this.getKey(key), points, this.#durationMs(options)), points)
  }

  /** Returns consumed points. */
  async reward(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    return this.result(await this.counters.add(this.getKey(key), -points, this.#durationMs(options)), -points)
  }

  /** The state of a key, or null if it has none. */
  async get(key: string | number, _options?: ActionOptions): Promise<RateLimiterRes | null> {
    const hits = await this.counters.get(this.getKey(key))
    return hits === undefined ? null : this.result(hits, 0)
  }

  /** Sets the consumed points of a key, and starts a duration. */
  async set(
    key: string | number,
    points: number,
    secDuration: number,
    _options?: ActionOptions,
  ): Promise<RateLimiterRes> {
    const ms = (secDuration >= 0 ? secDuration : this.#duration) * 1000
    await this.counters.set(this.getKey(key), points, ms)
    return new RateLimiterRes(0, ms > 0 ? ms : -1, points)
  }

  /** Blocks a key for some seconds; 0 means until `delete`. */
  block(key: string | number, secDuration: number, options?: ActionOptions): Promise<RateLimiterRes> {
    return this.set(key, this.unblockedPoints + 1, secDuration, options)
  }

  /** Removes the state of a key. Resolves with false if it had none. */
  delete(key: string | number, _options?: ActionOptions): Promise<boolean> {
    return this.counters.delete(this.getKey(key))
  }

  #durationMs({ customDuration }: ActionOptions): number {
    return (customDuration !== undefined && customDuration >= 0 ? customDuration : this.#duration) * 1000
  }

  /** Creates the result of an action from the counted hits. */
  protected result({ hits, leftMs }: Hits, added: number): RateLimiterRes {
    return new RateLimiterRes(Math.max(this.#points - hits, 0), leftMs, hits, added !== 0 && hits === added)
  }
}

/** True for limiters, and for wrappers with the same operations. */
export const isCompatible = (limiter: unknown): limiter is CompatibleLimiter =>
  limiter instanceof RateLimiterAbstract || limiter instanceof RateLimiterCompatibleAbstract

/** The base of wrappers that can be used in place of a limiter. */
export abstract class RateLimiterCompatibleAbstract implements CompatibleLimiter {
  abstract get keyPrefix(): string
  abstract blockDuration: number
  abstract execEvenly: boolean
  abstract consume(key: string | number, points?: number, options?: ActionOptions): Promise<RateLimiterRes>
  abstract penalty(key: string | number, points?: number, options?: ActionOptions): Promise<RateLimiterRes>
  abstract reward(key: string | number, points?: number, options?: ActionOptions): Promise<RateLimiterRes>
  abstract get(key: string | number, options?: ActionOptions): Promise<RateLimiterRes | null>
  abstract set(
    key: string | number,
    points: number,
    secDuration: number,
    options?: ActionOptions,
  ): Promise<RateLimiterRes>
  abstract block(key: string | number, secDuration: number, options?: ActionOptions): Promise<RateLimiterRes>
  abstract delete(key: string | number, options?: ActionOptions): Promise<boolean>
}
