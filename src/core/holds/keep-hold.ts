import { maxTimerMs } from '../clock.js'
import type { Decision } from '../decision.js'
import { decodeHold } from './hold-token.js'

/** Releases and renews holds by the `holdId` of their decision. */
export interface HoldHandler {
  /** Frees the slots of a hold. Resolves to false if it has expired, was released before, or is unknown. */
  release(holdId: string): Promise<boolean>
  /** Extends a hold by its `maxHold`, from now. Resolves to false if it has expired, was released, or is unknown. */
  renew(holdId: string): Promise<boolean>
}

/** A decision and the slots that it occupies. */
export interface Acquired {
  /** The decision. If `allowed` is false, nothing is occupied. */
  readonly decision: Decision
  /**
   * Frees the slots. Resolves to true if they were still held, and to false if they had expired or nothing was held. Further
   * calls return the first result.
   */
  release(): Promise<boolean>
  /** Extends the hold now. Not needed for long work: holds are renewed automatically. Resolves to false if the hold is lost. */
  renew(): Promise<boolean>
}

/** A hold is renewed three times in its `maxHold`, so that two renewals may fail. */
const renewalsPerHold = 3

/** Renews the hold of a decision until it is released. The timer does not keep the process alive. */
export function keepHold(handler: HoldHandler, decision: Decision): Acquired {
  const { holdId } = decision
  if (holdId === undefined) return { decision, release: async () => false, renew: async () => false }
  const intervalMs = Math.min(maxTimerMs, Math.max(1, decodeHold(holdId).maxHoldMs / renewalsPerHold))
  let released: Promise<boolean> | undefined
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => clearTimeout(timer)
  const arm = (): void => {
    timer = setTimeout(renewInTime, intervalMs)
    // Edge runtimes have no `unref`.
    timer.unref?.()
  }
  const renewInTime = (): void => {
    handler.renew(holdId).then(
      (isHeld) => {
        if (isHeld && released === undefined) arm()
      },
      () => {
        if (released === undefined) arm()
      },
    )
  }
  arm()
  return {
    decision,
    release() {
      stop()
      // After a failed call, the next one tries again. Otherwise the hold expires.
      released ??= handler.release(holdId).catch((error: unknown) => {
        released = undefined
        throw error
      })
      return released
    },
    renew: () => (released === undefined ? handler.renew(holdId) : Promise.resolve(false)),
  }
}
