import { ExpiringIds } from '../../core/scheduling/expiring-ids.js'
import type { HitCounters } from '../counters/hit-counters.js'
import { RedisCounters } from '../counters/redis-counters.js'
import {
  type ActionOptions,
  type CompatibleLimiter,
  isCompatible,
  RateLimiterAbstract,
  type RateLimiterOptions,
} from './limiter-base.js'
import { RateLimiterRes } from './result.js'
import { scriptedCounters } from './scripted-counters.js'

/** Options of `RateLimiterRedis`. */
export interface RateLimiterRedisOptions extends RateLimiterOptions {
  /** An ioredis or node-redis client, or a URI such as `redis://127.0.0.1:6379`. */
  storeClient: unknown
  /** Keys that consumed this many points are rejected in this process, without a call to Redis. */
  inMemoryBlockOnConsumed?: number | undefined
  /** How long `inMemoryBlockOnConsumed` blocks, in seconds. Default: until the duration of the key ends. */
  inMemoryBlockDuration?: number | undefined
  /** Decides while Redis fails. */
  insuranceLimiter?: CompatibleLimiter | undefined
  /** `blockDuration` starts when a key has consumed this many points. Default: when it consumes more than `points`. */
  blockOnConsumed?: number | undefined
  /** A script that counts in place of the one of FluxGate, as in rate-limiter-flexible. */
  customIncrTtlLuaScript?: string | undefined
  /** Fails at once if the client is not connected, instead of waiting for the connection. */
  rejectIfRedisNotReady?: boolean | undefined
  /** The client is detected by its methods, so these have no effect. */
  useRedisPackage?: boolean | undefined
  /** The client is detected by its methods, so this has no effect. */
  useRedis3AndLowerPackage?: boolean | undefined
}

/** A limiter that counts in Redis. Each action is one atomic call. */
export class RateLimiterRedis extends RateLimiterAbstract {
  #counters: HitCounters | undefined
  readonly #client: unknown
  readonly #rejectIfNotReady: boolean
  /** Keys that are rejected without a call to Redis. */
  #blocked = new ExpiringIds()
  #blockOnConsumed = 0
  #blockSeconds = 0
  #insurance: CompatibleLimiter | undefined
  readonly #script: string | undefined
  #blockInStoreOn = 0

  constructor(options: RateLimiterRedisOptions) {
    super(options)
    const { storeClient, customIncrTtlLuaScript: script } = options
    if (script !== undefined && typeof script !== 'string')
      throw new Error(`customIncrTtlLuaScript must be the text of a script; received ${typeof script}.`)
    this.#script = script || undefined
    if (storeClient === undefined) throw new Error('storeClient is missing. Pass an ioredis or node-redis client.')
    this.#client = storeClient
    this.#rejectIfNotReady = options.rejectIfRedisNotReady ?? false
    this.inMemoryBlockOnConsumed = options.inMemoryBlockOnConsumed
    this.inMemoryBlockDuration = options.inMemoryBlockDuration
    this.blockOnConsumed = options.blockOnConsumed
    this.insuranceLimiter = options.insuranceLimiter
    // A client that is not connected may be incomplete, and is not used before it is ready.
    if (this.#isUsable()) this.#counters = this.#openCounters()
  }

  protected get counters(): HitCounters {
    this.#counters ??= this.#openCounters()
    return this.#counters
  }

  #openCounters(): HitCounters {
    const counters = new RedisCounters(this.#client as object | string, '')
    return this.#script === undefined ? counters : scriptedCounters(counters, this.#script, this)
  }

  #isUsable(): boolean {
    return !this.#rejectIfNotReady || isReady(this.#client)
  }

  /** The client that was passed as `storeClient`. */
  get client(): unknown {
    return this.#client
  }

  /** Keys that consumed this many points are rejected in this process; 0 turns this off. */
  get inMemoryBlockOnConsumed(): number {
    return this.#blockOnConsumed
  }
  set inMemoryBlockOnConsumed(value: number | undefined) {
    const consumed = Math.trunc(Number(value ?? 0)) || 0
    if (consumed > 0 && this.points > consumed)
      throw new Error(`inMemoryBlockOnConsumed must be at least points, which is ${this.points}; received ${consumed}.`)
    this.#blockOnConsumed = consumed
  }

  /** How long `inMemoryBlockOnConsumed` blocks, in seconds. 0: until the duration of the key ends. */
  get inMemoryBlockDuration(): number {
    return this.#blockSeconds
  }
  set inMemoryBlockDuration(value: number | undefined) {
    const seconds = Math.trunc(Number(value ?? 0)) || 0
    if (seconds > 0 && this.#blockOnConsumed === 0)
      throw new Error('inMemoryBlockDuration requires inMemoryBlockOnConsumed. Set both.')
    this.#blockSeconds = seconds
  }

  /** `blockDuration` starts when a key has consumed this many points. 0: when it consumes more than `points`. */
  get blockOnConsumed(): number {
    return this.#blockInStoreOn
  }
  set blockOnConsumed(value: number | undefined) {
    const consumed = Math.trunc(Number(value ?? 0)) || 0
    if (consumed > 0 && this.points > consumed)
      throw new Error(`blockOnConsumed must be at least points, which is ${this.points}; received ${consumed}.`)
    this.#blockInStoreOn = consumed
  }

  protected override get unblockedPoints(): number {
    return this.#blockInStoreOn > 0 ? Math.max(this.#blockInStoreOn - 1, this.points) : this.points
  }

  /** `inMemoryBlockDuration` in milliseconds. */
  get msInMemoryBlockDuration(): number {
    return this.#blockSeconds * 1000
  }

  /** Decides while Redis fails. */
  get insuranceLimiter(): CompatibleLimiter | undefined {
    return this.#insurance
  }
  set insuranceLimiter(limiter: CompatibleLimiter | undefined) {
    if (limiter !== undefined && !isCompatible(limiter))
      throw new Error('insuranceLimiter must be a limiter of this module, or extend RateLimiterCompatibleAbstract.')
    this.#insurance = limiter
    if (limiter === undefined) return
    limiter.blockDuration = this.blockDuration
    limiter.execEvenly = this.execEvenly
  }

  override async consume(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    const leftMs = this.getInMemoryBlockMsBeforeExpire(this.getKey(key))
    if (leftMs > 0) throw new RateLimiterRes(0, leftMs)
    return this.#insured(
      async () => {
        checkPoints(points)
        return this.#blockInMemory(this.getKey(key), super.consume(key, points, options))
      },
      (limiter) => limiter.consume(key, points, options),
    )
  }

  /** Blocks the key in this process if it has consumed enough. */
  async #blockInMemory(stored: string, consuming: Promise<RateLimiterRes>): Promise<RateLimiterRes> {
    if (this.#blockOnConsumed === 0) return consuming
    const outcome = await consuming.then(
      (result) => ({ result, isRejected: false }),
      (error: unknown) => {
        if (error instanceof RateLimiterRes) return { result: error, isRejected: true }
        throw error
      },
    )
    const { result, isRejected } = outcome
    if (result.consumedPoints >= this.#blockOnConsumed) {
      if (this.#blockSeconds === 0) this.#blocked.add(stored, Date.now() + result.msBeforeNext)
      else if (isRejected) {
        this.#blocked.add(stored, Date.now() + this.msInMemoryBlockDuration)
        result.msBeforeNext = this.msInMemoryBlockDuration
      }
    }
    if (isRejected) throw result
    return result
  }

  override penalty(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    return this.#insured(
      async () => {
        checkPoints(points)
        return super.penalty(key, points, options)
      },
      (limiter) => limiter.penalty(key, points, options),
    )
  }

  override reward(key: string | number, points = 1, options: ActionOptions = {}): Promise<RateLimiterRes> {
    return this.#insured(
      async () => {
        checkPoints(points)
        return super.reward(key, points, options)
      },
      (limiter) => limiter.reward(key, points, options),
    )
  }

  override get(key: string | number, options?: ActionOptions): Promise<RateLimiterRes | null> {
    return this.#insured(
      () => super.get(key, options),
      (limiter) => limiter.get(key, options),
    )
  }

  override set(key: string | number, points: number, secDuration: number, options?: ActionOptions) {
    return this.#insured(
      () => super.set(key, points, secDuration, options),
      (limiter) => limiter.set(key, points, secDuration, options),
    )
  }

  override block(key: string | number, secDuration: number, options?: ActionOptions): Promise<RateLimiterRes> {
    return this.#insured(
      () => super.set(key, this.unblockedPoints + 1, secDuration, options),
      (limiter) => limiter.block(key, secDuration, options),
    )
  }

  override delete(key: string | number, options?: ActionOptions): Promise<boolean> {
    return this.#insured(
      async () => {
        const isDeleted = await super.delete(key, options)
        this.#blocked.delete(this.getKey(key))
        return isDeleted
      },
      (limiter) => limiter.delete(key, options),
    )
  }

  /** Milliseconds until the block of a stored key in this process ends; 0 if it is not blocked. */
  getInMemoryBlockMsBeforeExpire(storedKey: string): number {
    return this.#blockOnConsumed > 0 ? Math.max((this.#blocked.expiresAt(storedKey) ?? 0) - Date.now(), 0) : 0
  }

  /** Removes all blocks of this process. */
  deleteInMemoryBlockedAll(): void {
    this.#blocked = new ExpiringIds()
  }

  /** Closes the connection that the limiter opened for a URI. A client that was passed stays open. */
  async close(): Promise<void> {
    await this.#counters?.close()
  }

  /** Runs an action, and that of the insurance limiter if Redis fails. */
  async #insured<T>(action: () => Promise<T>, insured: (limiter: CompatibleLimiter) => Promise<T>): Promise<T> {
    try {
      if (!this.#isUsable()) throw new Error('Redis connection is not ready')
      return await action()
    } catch (error) {
      if (error instanceof RateLimiterRes || this.#insurance === undefined) throw error
      return insured(this.#insurance)
    }
  }
}

function checkPoints(points: unknown): void {
  if (Number.isInteger(points) || (typeof points === 'string' && /^[1-9]\d*$/.test(points))) return
  throw new Error(`points must be an integer; received ${String(points)}.`)
}

/** `status` of ioredis, or `isReady` of node-redis. */
function isReady(client: unknown): boolean {
  const { status, isReady: ready } = (client ?? {}) as { readonly status?: unknown; readonly isReady?: unknown }
  if (status !== undefined) return status === 'ready'
  return typeof ready === 'function' ? Boolean(ready.call(client)) : ready !== false
}
