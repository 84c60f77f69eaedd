import { FluxGateError } from '../../core/errors.js'
import {
  abortSignal,
  boolean,
  milliseconds,
  millisecondsBetween,
  textMatching,
  wholeNumber,
} from '../../validation/kinds.js'
import { object } from '../../validation/structures.js'

/** Options for all holds of a lock. Each hold can override them. */
export interface HoldOptions {
  /** The lease duration in milliseconds, from 10 to 86,400,000 (one day). Default: 10,000. */
  readonly ttlMs?: number
  /** How long to wait while other owners hold the lock, in milliseconds; 0 means not to wait. Default: 10,000. */
  readonly waitMs?: number
  /** Whether waiting callers are served in the order of their requests. Default: false, which is faster. */
  readonly fair?: boolean
  /** Whether the lease is extended automatically while held. Default: true. */
  readonly watchdog?: boolean
}

/** Options of one hold. */
export interface AcquireOptions extends HoldOptions {
  /** Holds with the same owner share their locks. Default: a random, unique owner. */
  readonly owner?: string
  /** Cancels waiting. In `using`, it also aborts the signal that is passed to the work. */
  readonly signal?: AbortSignal
}

/** Options of `redisLock`. */
export interface LockOptions extends HoldOptions {
  /** The prefix of all keys. Default: `fluxgate`. */
  readonly prefix?: string
  /** The timeout of one Redis call, in milliseconds. Default: a third of the lease, but at most 1000. */
  readonly timeoutMs?: number
}

const longestTtlMs = 86_400_000
const characters = textMatching('a non-empty string', /./s)
const hold = { ttlMs: millisecondsBetween(10, longestTtlMs), waitMs: milliseconds, fair: boolean, watchdog: boolean }
const lock = { ...hold, prefix: characters, timeoutMs: millisecondsBetween(1, longestTtlMs) }

export const acquireOptions = object({}, { ...hold, owner: characters, signal: abortSignal })
export const lockOptions = object({}, lock)
export const quorumOptions = object({}, { ...lock, retryMs: millisecondsBetween(1, 60_000) })
export const semaphoreOptions = object({ permits: wholeNumber(1, 1_000_000) }, lock)

export const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
