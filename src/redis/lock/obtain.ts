import { isMisconfigured } from '../client/connection-errors.js'
import { within } from '../client/within.js'
import { type Busy, type Claim, type Granted, type Keeper, placeMs, who } from './keeper.js'
import { validityMs } from './lease.js'
import { Place } from './place.js'
import type { WakeUps } from './wake-ups.js'

export interface WaitLimit {
  /** By `performance.now()`. */
  readonly untilAt: number
  readonly signal: AbortSignal | undefined
  /** Throws once the lock is closed. */
  readonly assertOpen: () => void
  /** The timeout of one call. Failed calls are retried for at least this long, even if the deadline is earlier. */
  readonly timeoutMs: number
}

export interface Obtained extends Granted {
  /** The `performance.now()` from which the lease counts. */
  readonly askedAt: number
}

/** The longest time between two attempts, in case a message was lost. */
const longestSleepMs = 5_000

/**
 * Requests the locks until they are granted. Resolves with `undefined` at the deadline. After a lost reply the same claim is
 * repeated, so that a grant without a reply does not block the caller. Rejects with the reason of the signal, or if Redis
 * kept failing until the deadline. A grant whose reply was lost is released in the background; `settle` receives the promise.
 */
export async function obtain(
  keeper: Keeper,
  claim: Claim,
  { untilAt, signal, assertOpen, timeoutMs }: WaitLimit,
  wakeUps: WakeUps | undefined,
  settle: (ending: Promise<unknown>) => void,
): Promise<Obtained | undefined> {
  const failuresUntilAt = Math.max(untilAt, performance.now() + timeoutMs)
  let place: Place | undefined
  let isCalled = false
  let mayBeGranted = claim.fair

  /** Waits for the next announcement on the channel, or for the retry time. */
  async function sleep({ channel, retryInMs }: Busy): Promise<void> {
    if (place !== undefined && place.channel !== channel) leave()
    if (channel !== undefined && wakeUps !== undefined) place ??= wakeUps.join(channel, claim.id, claim.fair)
    const ms = Math.min(retryInMs, claim.fair ? placeMs / 3 : longestSleepMs, untilAt - performance.now())
    if (place !== undefined && wakeUps !== undefined) isCalled = await wakeUps.wait(place, ms, signal)
    else await pause(ms, signal)
  }
  function leave(): void {
    if (place === undefined) return
    if (isCalled) wakeUps?.passOn(place)
    isCalled = false
    wakeUps?.leave(place)
    place = undefined
  }

  try {
    for (;;) {
      signal?.throwIfAborted()
      assertOpen()
      const askedAt = performance.now()
      let outcome: Granted | Busy
      try {
        outcome = await within({ who, what: 'be acquired', timeoutMs }, () => keeper.grant(claim))
      } catch (error) {
        mayBeGranted = true
        if (isMisconfigured(error) || performance.now() >= failuresUntilAt) throw error
        await pause(25 + Math.random() * 50, signal)
        continue
      }
      if (outcome.granted) {
        mayBeGranted = true
        if (performance.now() < askedAt + validityMs(claim.ttlMs) && !signal?.aborted) {
          mayBeGranted = false
          isCalled = false
          return { ...outcome, askedAt }
        }
        // The lease expired before the reply arrived. Requesting it again extends it.
      }
      if (performance.now() >= untilAt) return undefined
      if (!outcome.granted) await sleep(outcome)
    }
  } finally {
    leave()
    if (mayBeGranted)
      settle(within({ who, what: 'be released', timeoutMs }, () => keeper.release(claim)).catch(() => {}))
  }
}

/** Waits without being woken. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<boolean> =>
  new Place('', '', false).wait(ms, signal)
