import { withTimeout } from '../client/with-timeout.js'

/** A request for locks. Repeating the same request after a lost reply yields the same hold. */
export interface LockRequest {
  /** In a cluster, all names are in one slot. */
  readonly names: readonly string[]
  /** Holds with the same owner share locks. */
  readonly owner: string
  /** Identifies this hold. */
  readonly id: string
  readonly ttlMs: number
  /** Whether to queue in first-come, first-served order. */
  readonly fair: boolean
}

export interface Granted {
  readonly granted: true
  /** The fencing token of each name, greater than all earlier tokens of that name. */
  readonly fences: readonly number[]
}

export interface Denied {
  readonly granted: false
  /** The channel that announces when to retry; `undefined` if there are no announcements. */
  readonly channel: string | undefined
  /** Retry after this time even without an announcement. */
  readonly retryInMs: number
}

/** Stores which locks are held. All methods are idempotent, and reject if the outcome is unknown. */
export interface LockBackend {
  /** Grants all names or none. */
  grant(request: LockRequest): Promise<Granted | Denied>
  /** Restarts the lease with its full duration. Resolves with false if the hold is lost. */
  extend(request: LockRequest): Promise<boolean>
  /** Releases the hold and its queue slot. Resolves with false if there was no hold. */
  release(request: LockRequest): Promise<boolean>
}

/** How long a queue slot is kept without a renewed request, in milliseconds. */
export const queueSlotMs = 3_000
/** How long a fencing token is kept, in milliseconds. Later tokens are greater because they are derived from the time. */
export const fenceMs = 7 * 86_400_000

/** The subject of error messages. */
export const subject = 'The lock'

/** Calls a backend with a timeout. `operation` completes "The lock failed to …" in error messages. */
export const callBackend = <T>(operation: string, timeoutMs: number, call: () => Promise<T>): Promise<T> =>
  withTimeout({ subject, operation, timeoutMs }, call)
