import { maxTimerMs } from '../../core/clock.js'
import type { CompatibleLimiter } from './limiter-base.js'

/** Thrown if a request can never be served, if the queue is full, or if the request has expired. */
export class RateLimiterQueueError extends Error {
  /** `CustomError`, as in the original. */
  override readonly name = 'CustomError'
}

/** Options of `RateLimiterQueue`. */
export interface RateLimiterQueueOptions {
  /** The maximum number of waiting requests per key. Default 4294967295. */
  maxQueueSize?: number | undefined
}

type Limiter = Pick<CompatibleLimiter, 'consume' | 'get'> & { readonly points: number }

interface Waiting {
  readonly tokens: number
  /** Epoch seconds; 0 for a request that does not expire. */
  readonly expiresUnixAt: number
  readonly resolve: (remaining: number) => void
  readonly reject: (error: unknown) => void
}

const defaultKey = 'limiter'
/** How often a key is tried again whose points never return: `delete` may return them. */
const retryMs = 1_000

/** Queues requests, first come, first served, until the limiter has enough points. */
export class RateLimiterQueue {
  readonly #limiter: Limiter
  readonly #maxQueueSize: number
  readonly #queues = new Map<string | number, Waiting[]>()

  constructor(limiter: Limiter, { maxQueueSize = 4_294_967_295 }: RateLimiterQueueOptions = {}) {
    this.#limiter = limiter
    this.#maxQueueSize = maxQueueSize
  }

  /** The points that are left in the current duration; all points if the store fails. */
  async getTokensRemaining(key: string | number = defaultKey): Promise<number> {
    const result = await this.#limiter.get(key).catch(() => null)
    return result?.remainingPoints ?? this.#limiter.points
  }

  /**
   * Resolves with the remaining points once the tokens are taken. Rejects if the request still waits at its turn at or after
   * `expiresUnixAt`, in epoch seconds.
   */
  async removeTokens(tokens: number, key: string | number = defaultKey, expiresUnixAt = 0): Promise<number> {
    const { points } = this.#limiter
    if (tokens > points)
      throw new RateLimiterQueueError(
        `tokens must be at most the points of the limiter, ${points}; received ${tokens}.`,
      )
    const queue = this.#queues.get(key)
    if (queue !== undefined) return this.#wait(queue, tokens, expiresUnixAt)
    try {
      return (await this.#limiter.consume(key, tokens)).remainingPoints
    } catch (rejected) {
      if (rejected instanceof Error) throw rejected
      const existing = this.#queues.get(key)
      if (existing !== undefined) return this.#wait(existing, tokens, expiresUnixAt)
      const started: Waiting[] = []
      const waiting = this.#wait(started, tokens, expiresUnixAt)
      if (started.length > 0) {
        this.#queues.set(key, started)
        this.#serveLater(key, started, rejected)
      }
      return waiting
    }
  }

  #wait(queue: Waiting[], tokens: number, expiresUnixAt: number): Promise<number> {
    if (queue.length >= this.#maxQueueSize)
      return Promise.reject(new RateLimiterQueueError(`The queue has its maximum ${this.#maxQueueSize} requests.`))
    return new Promise((resolve, reject) => queue.push({ tokens, expiresUnixAt, resolve, reject }))
  }

  #serveLater(key: string | number, queue: Waiting[], rejected: unknown): void {
    const { msBeforeNext } = rejected as { readonly msBeforeNext: number }
    setTimeout(() => void this.#serve(key, queue), msBeforeNext < 0 ? retryMs : Math.min(msBeforeNext, maxTimerMs))
  }

  async #serve(key: string | number, queue: Waiting[]): Promise<void> {
    rejectExpired(queue)
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      try {
        const { remainingPoints } = await this.#limiter.consume(key, next.tokens)
        queue.shift()
        next.resolve(remainingPoints)
      } catch (rejected) {
        if (!(rejected instanceof Error)) return this.#serveLater(key, queue, rejected)
        queue.shift()
        next.reject(rejected)
      }
    }
    this.#queues.delete(key)
  }
}

function rejectExpired(queue: Waiting[]): void {
  const seconds = Math.floor(Date.now() / 1000)
  const isExpired = ({ expiresUnixAt }: Waiting): boolean => expiresUnixAt > 0 && seconds >= expiresUnixAt
  const expired = queue.filter(isExpired)
  if (expired.length === 0) return
  queue.splice(0, queue.length, ...queue.filter((waiting) => !isExpired(waiting)))
  for (const { reject } of expired)
    reject(new RateLimiterQueueError('The request expired before its tokens were taken.'))
}
