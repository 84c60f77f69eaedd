import { FluxGateError } from '../../core/errors.js'
import { within } from '../client/within.js'
import { type Busy, type Claim, type Granted, type Keeper, who } from './keeper.js'
import type { RedisLocks } from './redis-locks.js'

interface Votes<T> {
  readonly votes: readonly T[]
  readonly errors: readonly unknown[]
}

/**
 * Redlock: a lock is held if it is held on the majority of several independent servers. Each server has a short timeout, so
 * that servers that are down do not use up the lease.
 */
export class QuorumLocks implements Keeper {
  readonly #members: readonly RedisLocks[]
  readonly #majority: number
  readonly #timeoutMs: (ttlMs: number) => number
  readonly #retryMs: number

  constructor(members: readonly RedisLocks[], timeoutMs: (ttlMs: number) => number, retryMs: number) {
    this.#members = members
    this.#majority = Math.floor(members.length / 2) + 1
    this.#timeoutMs = timeoutMs
    this.#retryMs = retryMs
  }

  async grant(claim: Claim): Promise<Granted | Busy> {
    const { votes, errors } = await this.#ask(
      claim,
      (member) => member.grant(claim),
      ({ granted }) => granted,
    )
    const grants = votes.filter((vote): vote is Granted => vote.granted)
    // The next owner asks a majority, which includes at least one server that stores this token.
    const fence = Math.max(...grants.flatMap(({ fences }) => fences))
    if (grants.length >= this.#majority && (await this.#confirm(claim, fence)))
      return { granted: true, fences: claim.names.map(() => fence) }
    await this.release(claim)
    if (errors.length > this.#members.length - this.#majority) throw this.#tooFew(errors)
    // The random delay keeps concurrent attempts from colliding repeatedly.
    return { granted: false, channel: undefined, retryInMs: this.#retryMs * (0.5 + Math.random()) }
  }

  async extend(claim: Claim): Promise<boolean> {
    const { votes, errors } = await this.#ask(claim, (member) => member.extend(claim), Boolean)
    if (votes.filter(Boolean).length >= this.#majority) return true
    if (votes.length - votes.filter(Boolean).length > this.#members.length - this.#majority) return false
    throw this.#tooFew(errors)
  }

  /** Releases on all servers, because a grant whose reply was lost is not known here. */
  async release(claim: Claim): Promise<boolean> {
    const timeoutMs = this.#timeoutMs(claim.ttlMs)
    const ended = await Promise.all(
      this.#members.map((member) =>
        within({ who, what: 'be released', timeoutMs }, () => member.release(claim)).catch(() => false),
      ),
    )
    return ended.filter(Boolean).length >= this.#majority
  }

  async #confirm(claim: Claim, fence: number): Promise<boolean> {
    const { votes } = await this.#ask(claim, (member) => member.extend(claim, fence), Boolean)
    return votes.filter(Boolean).length >= this.#majority
  }

  /** Resolves as soon as a majority agrees or can no longer agree. With an even number of servers, a tie is a failure. */
  #ask<T>(claim: Claim, ask: (member: RedisLocks) => Promise<T>, agrees: (vote: T) => boolean): Promise<Votes<T>> {
    const timeoutMs = this.#timeoutMs(claim.ttlMs)
    const votes: T[] = []
    const errors: unknown[] = []
    return new Promise((resolve) => {
      const count = (): void => {
        const against = votes.filter((vote) => !agrees(vote)).length + errors.length
        const isDecided = votes.length + errors.length - against >= this.#majority || this.#isLost(against)
        if (isDecided) resolve({ votes: [...votes], errors: [...errors] })
      }
      for (const member of this.#members)
        within({ who, what: 'get a vote', timeoutMs }, () => ask(member))
          .then((vote) => votes.push(vote))
          .catch((error: unknown) => errors.push(error))
          .finally(count)
    })
  }

  #isLost = (against: number): boolean => against > this.#members.length - this.#majority

  #tooFew(errors: readonly unknown[]): FluxGateError {
    const count = this.#members.length
    return new FluxGateError(
      'FLUXGATE_STORE_FAILED',
      `Only ${count - errors.length} of ${count} Redis servers replied; a quorum lock needs ${this.#majority}. Check the servers that failed.`,
      { cause: new AggregateError(errors) },
    )
  }
}
