import { FluxGateError } from '../../core/errors.js'
import { within } from '../client/within.js'
import { type Busy, type Claim, type Granted, type Keeper, who } from './keeper.js'
import type { RedisLocks } from './redis-locks.js'

interface Votes<T> {
  readonly given: readonly T[]
  readonly errors: readonly unknown[]
}

/**
 * Redlock: a lock is held by whoever holds it on the majority of several servers that know nothing of each other. Each has
 * little time to answer, so that those that are down do not use up the lease.
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
    const { given, errors } = await this.#ask(
      claim,
      (member) => member.grant(claim),
      ({ granted }) => granted,
    )
    const grants = given.filter((vote): vote is Granted => vote.granted)
    // Whoever comes next asks the majority, and so at least one that is told this fence now.
    const fence = Math.max(...grants.flatMap(({ fences }) => fences))
    if (grants.length >= this.#majority && (await this.#confirm(claim, fence)))
      return { granted: true, fences: claim.names.map(() => fence) }
    await this.release(claim)
    if (errors.length > this.#members.length - this.#majority) throw this.#tooFew(errors)
    // Two who try at the same time would otherwise meet again and again.
    return { granted: false, channel: undefined, retryInMs: this.#retryMs * (0.5 + Math.random()) }
  }

  async extend(claim: Claim): Promise<boolean> {
    const { given, errors } = await this.#ask(claim, (member) => member.extend(claim), Boolean)
    if (given.filter(Boolean).length >= this.#majority) return true
    if (given.length - given.filter(Boolean).length > this.#members.length - this.#majority) return false
    throw this.#tooFew(errors)
  }

  /** Everywhere, also where it was not granted as far as is known. */
  async release(claim: Claim): Promise<boolean> {
    const timeoutMs = this.#timeoutMs(claim.ttlMs)
    const ended = await Promise.all(
      this.#members.map((member) =>
        within({ who, what: 'end a hold', timeoutMs }, () => member.release(claim)).catch(() => false),
      ),
    )
    return ended.filter(Boolean).length >= this.#majority
  }

  async #confirm(claim: Claim, fence: number): Promise<boolean> {
    const { given } = await this.#ask(claim, (member) => member.extend(claim, fence), Boolean)
    return given.filter(Boolean).length >= this.#majority
  }

  /** Resolves as soon as the majority agrees, or cannot any more: with an even number of members neither side may win. */
  #ask<T>(claim: Claim, ask: (member: RedisLocks) => Promise<T>, agrees: (vote: T) => boolean): Promise<Votes<T>> {
    const timeoutMs = this.#timeoutMs(claim.ttlMs)
    const given: T[] = []
    const errors: unknown[] = []
    return new Promise((resolve) => {
      const count = (): void => {
        const against = given.filter((vote) => !agrees(vote)).length + errors.length
        const isDecided = given.length + errors.length - against >= this.#majority || this.#isLost(against)
        if (isDecided) resolve({ given: [...given], errors: [...errors] })
      }
      for (const member of this.#members)
        within({ who, what: 'vote', timeoutMs }, () => ask(member))
          .then((vote) => given.push(vote))
          .catch((error: unknown) => errors.push(error))
          .finally(count)
    })
  }

  #isLost = (against: number): boolean => against > this.#members.length - this.#majority

  #tooFew(errors: readonly unknown[]): FluxGateError {
    const count = this.#members.length
    return new FluxGateError(
      'FLUXGATE_STORE_FAILED',
      `Only ${count - errors.length} of ${count} Redis servers answer, and a lock needs ${this.#majority} of them.`,
      { cause: new AggregateError(errors) },
    )
  }
}
