import { FluxGateError } from '../../core/errors.js'
import { callBackend, type Denied, type Granted, type LockBackend, type LockRequest } from './backend.js'
import type { RedisLockBackend } from './redis-backend.js'

interface Votes<T> {
  readonly votes: readonly T[]
  readonly errors: readonly unknown[]
}

/**
 * Redlock: a lock is held if it is held on the majority of several independent servers. Each server has a short timeout, so
 * that servers that are down do not use up the lease.
 */
export class QuorumLockBackend implements LockBackend {
  readonly #members: readonly RedisLockBackend[]
  readonly #majority: number
  readonly #timeoutMs: (ttlMs: number) => number
  readonly #retryMs: number

  constructor(members: readonly RedisLockBackend[], timeoutMs: (ttlMs: number) => number, retryMs: number) {
    this.#members = members
    this.#majority = Math.floor(members.length / 2) + 1
    this.#timeoutMs = timeoutMs
    this.#retryMs = retryMs
  }

  async grant(request: LockRequest): Promise<Granted | Denied> {
    const { votes, errors } = await this.#poll(
      request,
      (member) => member.grant(request),
      ({ granted }) => granted,
    )
    const grants = votes.filter((vote): vote is Granted => vote.granted)
    // The next owner asks a majority, which includes at least one server that stores this token.
    const fence = Math.max(...grants.flatMap(({ fences }) => fences))
    if (grants.length >= this.#majority && (await this.#confirm(request, fence)))
      return { granted: true, fences: request.names.map(() => fence) }
    await this.release(request)
    if (errors.length > this.#members.length - this.#majority) throw this.#quorumLost(errors)
    // The random delay keeps concurrent attempts from colliding repeatedly.
    return { granted: false, channel: undefined, retryInMs: this.#retryMs * (0.5 + Math.random()) }
  }

  async extend(request: LockRequest): Promise<boolean> {
    const { votes, errors } = await this.#poll(request, (member) => member.extend(request), Boolean)
    if (votes.filter(Boolean).length >= this.#majority) return true
    if (votes.length - votes.filter(Boolean).length > this.#members.length - this.#majority) return false
    throw this.#quorumLost(errors)
  }

  /** Releases on all servers, because a grant whose reply was lost is not known here. */
  async release(request: LockRequest): Promise<boolean> {
    const timeoutMs = this.#timeoutMs(request.ttlMs)
    const released = await Promise.all(
      this.#members.map((member) =>
        callBackend('be released', timeoutMs, () => member.release(request)).catch(() => false),
      ),
    )
    return released.filter(Boolean).length >= this.#majority
  }

  async #confirm(request: LockRequest, fence: number): Promise<boolean> {
    const { votes } = await this.#poll(request, (member) => member.extend(request, fence), Boolean)
    return votes.filter(Boolean).length >= this.#majority
  }

  /** Resolves as soon as a majority agrees or can no longer agree. With an even number of servers, a tie is a failure. */
  #poll<T>(
    request: LockRequest,
    ask: (member: RedisLockBackend) => Promise<T>,
    agrees: (vote: T) => boolean,
  ): Promise<Votes<T>> {
    const timeoutMs = this.#timeoutMs(request.ttlMs)
    const votes: T[] = []
    const errors: unknown[] = []
    return new Promise((resolve) => {
      const count = (): void => {
        const against = votes.filter((vote) => !agrees(vote)).length + errors.length
        const isDecided = votes.length + errors.length - against >= this.#majority || this.#hasLost(against)
        if (isDecided) resolve({ votes: [...votes], errors: [...errors] })
      }
      for (const member of this.#members)
        callBackend('get a vote', timeoutMs, () => ask(member))
          .then((vote) => votes.push(vote))
          .catch((error: unknown) => errors.push(error))
          .finally(count)
    })
  }

  #hasLost = (against: number): boolean => against > this.#members.length - this.#majority

  #quorumLost(errors: readonly unknown[]): FluxGateError {
    const count = this.#members.length
    return new FluxGateError(
      'FLUXGATE_STORE_FAILED',
      `Only ${count - errors.length} of ${count} Redis servers replied; a quorum lock needs ${this.#majority}. Check the servers that failed.`,
      { cause: new AggregateError(errors) },
    )
  }
}
