import { type Clock, schedule } from '../core/clock.js'
import type { CheckOptions } from '../core/handler.js'
import type { Costs } from '../core/rule.js'
import type { Departure } from '../core/waiting/waiting-room.js'
import type { EdgeRequest } from './edge-request.js'

/**
 * The options of one check, and the state of its request while it is delayed. There is one per request, but few requests are
 * delayed, so promises and signals are created on demand. Members are public, because private ones are slower to create.
 */
export class HeldRequest implements CheckOptions {
  readonly group: HeldRequests
  readonly request: EdgeRequest
  readonly ruleSetId: string | undefined
  readonly permits: number | undefined
  readonly costs: Costs | undefined
  /** Resolves when the request leaves the waiting room of the handler; undefined if it has not entered one. */
  departure: Promise<Departure> | undefined = undefined
  resolveDeparture: ((departure: Departure) => void) | undefined = undefined
  aborting: AbortController | undefined = undefined
  /** Stops watching the connection of the client. */
  stopWatching: (() => void) | undefined = undefined
  /** True once the guard has closed. */
  isClosed = false

  constructor(
    group: HeldRequests,
    request: EdgeRequest,
    ruleSetId: string | undefined,
    permits: number | undefined,
    costs?: Costs,
  ) {
    this.group = group
    this.request = request
    this.ruleSetId = ruleSetId
    this.permits = permits
    this.costs = costs
  }

  /** Aborts when the client disconnects, and when the guard closes. */
  signal(): AbortSignal {
    if (this.aborting === undefined) {
      this.aborting = new AbortController()
      this.group.add(this, this.aborting)
    }
    return this.aborting.signal
  }

  onEnter(): void {
    this.departure = new Promise((resolve) => {
      this.resolveDeparture = resolve
    })
  }

  onLeave(departure: Departure): void {
    this.resolveDeparture?.(departure)
  }

  /** The same options for handlers of other packages, which may call the functions without their object. */
  asOptions(): CheckOptions {
    return {
      ruleSetId: this.ruleSetId,
      permits: this.permits,
      costs: this.costs,
      signal: () => this.signal(),
      onEnter: () => this.onEnter(),
      onLeave: (departure) => this.onLeave(departure),
    }
  }

  /** Waits until the handler's waiting room releases the request. For a handler without a waiting room, waits for the delay. */
  wait(delayMs: number, clock: Clock): Promise<Departure> {
    if (this.departure !== undefined) return this.departure
    const signal = this.signal()
    if (signal.aborted) return Promise.resolve('ABORTED')
    return new Promise((resolve) => {
      const abort = (): void => {
        cancel()
        resolve('ABORTED')
      }
      const cancel = schedule(clock, delayMs, () => {
        signal.removeEventListener('abort', abort)
        resolve('RELEASED')
      })
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  close(): void {
    this.isClosed = true
    this.aborting?.abort()
  }
}

/** The delayed requests of one guard. */
export class HeldRequests {
  readonly #all = new Set<HeldRequest>()
  isClosed = false

  add(held: HeldRequest, aborting: AbortController): void {
    this.#all.add(held)
    const disconnected = held.request.signal()
    const abort = (): void => aborting.abort()
    // The signal may live as long as the connection.
    held.stopWatching = () => disconnected.removeEventListener('abort', abort)
    if (disconnected.aborted) abort()
    else disconnected.addEventListener('abort', abort, { once: true })
    if (this.isClosed) held.close()
  }

  remove(held: HeldRequest): void {
    if (held.aborting === undefined) return
    this.#all.delete(held)
    held.stopWatching?.()
  }

  close(): void {
    this.isClosed = true
    for (const held of this.#all) held.close()
  }
}
