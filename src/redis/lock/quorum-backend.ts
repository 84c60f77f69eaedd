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
export function quorumBackend(
  members: readonly RedisLockBackend[],
  timeoutMsOf: (ttlMs: number) => number,
  retryMs: number,
): LockBackend {
  const majority = Math.floor(members.length / 2) + 1
  const isMajority = (votes: readonly boolean[]): boolean => votes.filter(Boolean).length >= majority
  const hasLost = (against: number): boolean => against > members.length - majority

  /** Resolves as soon as a majority agrees or can no longer agree. With an even number of servers, a tie is a failure. */
  function poll<T>(
    { ttlMs }: LockRequest,
    ask: (member: RedisLockBackend) => Promise<T>,
    agrees: (vote: T) => boolean,
  ): Promise<Votes<T>> {
    const votes: T[] = []
    const errors: unknown[] = []
    return new Promise((resolve) => {
      const count = (): void => {
        const against = votes.filter((vote) => !agrees(vote)).length + errors.length
        const isDecided = votes.length + errors.length - against >= majority || hasLost(against)
        if (isDecided) resolve({ votes: [...votes], errors: [...errors] })
      }
      for (const member of members)
        callBackend('get a vote', timeoutMsOf(ttlMs), () => ask(member))
          .then((vote) => votes.push(vote))
          .catch((error: unknown) => errors.push(error))
          .finally(count)
    })
  }

  async function confirm(request: LockRequest, fence: number): Promise<boolean> {
    return isMajority((await poll(request, (member) => member.extend(request, fence), Boolean)).votes)
  }

  const quorumLost = (errors: readonly unknown[]): FluxGateError =>
    new FluxGateError(
      'FLUXGATE_STORE_FAILED',
      `Only ${members.length - errors.length} of ${members.length} Redis servers replied; a quorum lock needs ${majority}. Check the servers that failed.`,
      { cause: new AggregateError(errors) },
    )

  /** Releases on all servers, because a grant whose reply was lost is not known here. */
  async function release(request: LockRequest): Promise<boolean> {
    const calls = members.map((member) =>
      callBackend('be released', timeoutMsOf(request.ttlMs), () => member.release(request)).catch(() => false),
    )
    return isMajority(await Promise.all(calls))
  }

  return {
    async grant(request) {
      const { votes, errors } = await poll<Granted | Denied>(
        request,
        (member) => member.grant(request),
        ({ granted }) => granted,
      )
      const grants = votes.filter((vote): vote is Granted => vote.granted)
      // The next owner asks a majority, which includes at least one server that stores this token.
      const fence = Math.max(...grants.flatMap(({ fences }) => fences))
      if (grants.length >= majority && (await confirm(request, fence)))
        return { granted: true, fences: request.names.map(() => fence) }
      await release(request)
      if (hasLost(errors.length)) throw quorumLost(errors)
      // The random delay keeps concurrent attempts from colliding repeatedly.
      return { granted: false, channel: undefined, retryInMs: retryMs * (0.5 + Math.random()) }
    },
    async extend(request) {
      const { votes, errors } = await poll(request, (member) => member.extend(request), Boolean)
      if (isMajority(votes)) return true
      if (hasLost(votes.filter((vote) => !vote).length)) return false
      throw quorumLost(errors)
    },
    release,
  }
}
