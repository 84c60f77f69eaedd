import type { JointOptions } from '../../core/decision/joint/joint-check.js'
import type { Departure } from '../../core/waiting/waiting-room.js'

/** The part of a call that a delayed decision needs. */
export interface CancellableCall {
  /** Aborts when the caller cancels the call or its deadline passes. */
  signal(): AbortSignal
}

/**
 * The options of one decision, and its state while it is delayed. Few calls are delayed, so promises and signals are created on
 * demand. Members are public, because private ones are slower to create.
 */
export class DelayedCall implements JointOptions {
  readonly ruleSetId: string
  readonly call: CancellableCall
  /** Envoy cannot release the slot of a CONCURRENCY rule, so nothing waits for one. */
  readonly waitForSlot = false
  /** Resolves when the call leaves the waiting room; undefined if it has not entered it. */
  departure: Promise<Departure> | undefined = undefined
  resolveDeparture: ((departure: Departure) => void) | undefined = undefined

  constructor(ruleSetId: string, call: CancellableCall) {
    this.ruleSetId = ruleSetId
    this.call = call
  }

  signal(): AbortSignal {
    return this.call.signal()
  }

  onEnter(): void {
    this.departure = new Promise((resolve) => {
      this.resolveDeparture = resolve
    })
  }

  onLeave(departure: Departure): void {
    this.resolveDeparture?.(departure)
  }
}
