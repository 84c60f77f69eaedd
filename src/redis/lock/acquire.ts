import { isMisconfigured } from '../client/errors.js'
import { callBackend, type Denied, type Granted, type LockBackend, type LockRequest, queueSlotMs } from './backend.js'
import { validityMs } from './lease.js'
import { Waiter, type Waiters } from './waiters.js'

export interface AcquireLimits {
  /** By `performance.now()`. */
  readonly deadlineAt: number
  readonly signal: AbortSignal | undefined
  /** Throws once the lock is closed. */
  readonly assertOpen: () => void
  /** The timeout of one call. Failed calls are retried for at least this long, even if the deadline is earlier. */
  readonly timeoutMs: number
}

export interface Acquired extends Granted {
  /** The `performance.now()` from which the lease counts. */
  readonly requestedAt: number
}

/** The longest time between two attempts, in case a message was lost. */
const longestSleepMs = 5_000

/**
 * Requests the locks until they are granted. Resolves with `undefined` at the deadline. After a lost reply the same request is
 * repeated, so that a grant without a reply does not block the caller. Rejects with the reason of the signal, or if Redis
 * kept failing until the deadline. A grant whose reply was lost is released in the background; `trackRelease` receives the promise.
 */
export async function acquire(
  backend: LockBackend,
  request: LockRequest,
  { deadlineAt, signal, assertOpen, timeoutMs }: AcquireLimits,
  waiters: Waiters | undefined,
  trackRelease: (release: Promise<unknown>) => void,
): Promise<Acquired | undefined> {
  const retryFailuresUntilAt = Math.max(deadlineAt, performance.now() + timeoutMs)
  let waiter: Waiter | undefined
  let isNotified = false
  let mayBeGranted = request.fair

  /** Waits for the next announcement on the channel, or for the retry time. */
  async function sleep({ channel, retryInMs }: Denied): Promise<void> {
    if (waiter !== undefined && waiter.channel !== channel) leave()
    if (channel !== undefined && waiters !== undefined) waiter ??= waiters.add(channel, request.id, request.fair)
    const ms = Math.min(retryInMs, request.fair ? queueSlotMs / 3 : longestSleepMs, deadlineAt - performance.now())
    if (waiter !== undefined && waiters !== undefined) isNotified = await waiters.wait(waiter, ms, signal)
    else await pause(ms, signal)
  }
  function leave(): void {
    if (waiter === undefined) return
    if (isNotified) waiters?.notifyNext(waiter)
    isNotified = false
    waiters?.remove(waiter)
    waiter = undefined
  }

  try {
    for (;;) {
      signal?.throwIfAborted()
      assertOpen()
      const requestedAt = performance.now()
      let outcome: Granted | Denied
      try {
        outcome = await callBackend('be acquired', timeoutMs, () => backend.grant(request))
      } catch (error) {
        mayBeGranted = true
        if (isMisconfigured(error) || performance.now() >= retryFailuresUntilAt) throw error
        await pause(25 + Math.random() * 50, signal)
        continue
      }
      if (outcome.granted) {
        mayBeGranted = true
        if (performance.now() < requestedAt + validityMs(request.ttlMs) && !signal?.aborted) {
          mayBeGranted = false
          isNotified = false
          return { ...outcome, requestedAt }
        }
        // The lease expired before the reply arrived. Requesting it again extends it.
      }
      if (performance.now() >= deadlineAt) return undefined
      if (!outcome.granted) await sleep(outcome)
    }
  } finally {
    leave()
    if (mayBeGranted)
      trackRelease(callBackend('be released', timeoutMs, () => backend.release(request)).catch(() => {}))
  }
}

/** Waits without being woken. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<boolean> =>
  new Waiter('', '', false).wait(ms, signal)
