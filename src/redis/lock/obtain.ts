import { isMisconfigured } from '../client/connection-errors.js'
import { within } from '../client/within.js'
import { type Busy, type Claim, type Granted, type Keeper, placeMs, who } from './keeper.js'
import { validityMs } from './lease.js'
import { Place } from './place.js'
import type { WakeUps } from './wake-ups.js'

export interface Patience {
  /** By `performance.now()`. */
  readonly untilAt: number
  readonly signal: AbortSignal | undefined
  /** Throws if nobody should wait any more. */
  readonly assertOpen: () => void
  /** How long one call may take; also how long trouble with Redis is borne by one who does not want to wait. */
  readonly timeoutMs: number
}

export interface Obtained extends Granted {
  /** By `performance.now()`: the lease is counted from here. */
  readonly askedAt: number
}

/** Somebody looks at least so often, in case a message was lost. */
const longestSleepMs = 5_000

/**
 * Asks until it is granted, and is `undefined` if it was not in time. A reply that is lost is asked for again with the same
 * claim, so that nobody is kept out by a grant of its own. Rejects with the reason of the signal, or if Redis was in trouble
 * until the end. What may have been granted unheard is given back in the background, which `settle` is told.
 */
export async function obtain(
  keeper: Keeper,
  claim: Claim,
  { untilAt, signal, assertOpen, timeoutMs }: Patience,
  wakeUps: WakeUps | undefined,
  settle: (ending: Promise<unknown>) => void,
): Promise<Obtained | undefined> {
  const troubleUntilAt = Math.max(untilAt, performance.now() + timeoutMs)
  let place: Place | undefined
  let isCalled = false
  let mayBeGranted = claim.fair

  /** Has a place where the next message will come, and sleeps there. */
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
        outcome = await within({ who, what: 'grant a hold', timeoutMs }, () => keeper.grant(claim))
      } catch (error) {
        mayBeGranted = true
        if (isMisconfigured(error) || performance.now() >= troubleUntilAt) throw error
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
        // Already over when it came: asked for again, it is prolonged.
      }
      if (performance.now() >= untilAt) return undefined
      if (!outcome.granted) await sleep(outcome)
    }
  } finally {
    leave()
    if (mayBeGranted)
      settle(within({ who, what: 'end a hold', timeoutMs }, () => keeper.release(claim)).catch(() => {}))
  }
}

/** A place that nobody calls. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<boolean> =>
  new Place('', '', false).wait(ms, signal)
