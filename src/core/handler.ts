import type { Decision } from './decision.js'
import type { RequestContext } from './request-context.js'
import type { Departure } from './waiting/waiting-room.js'

export interface CheckOptions {
  /** Left out: the configured default; else the only rule set there is; else the one called `default`. */
  readonly ruleSetId?: string | undefined
  readonly permits?: number | undefined
  readonly peek?: boolean | undefined
  /**
   * Aborting while a delayed request has not been let go gives its permits back. A function is called only for a request
   * that is delayed.
   */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined
  /** Told when it was decided, in epoch milliseconds by the clock of the store. Handlers that do not know do not call it. */
  readonly onDecided?: ((atMs: number) => void) | undefined
  /** Called when the request has to wait, before it is answered. Handlers without a waiting room do not call it. */
  readonly onEnter?: (() => void) | undefined
  /** Called when a request that had to wait may go on, was given up, or is sent away because everything closes. */
  readonly onLeave?: ((how: Departure) => void) | undefined
}

/** Who answers: this process (`StandaloneHandler`), or a server that is asked over HTTP. */
export interface Handler {
  check(context: RequestContext, options?: CheckOptions): Promise<Decision>
  /**
   * Optional: the same without a promise, which saves a server some ticks for every request; throws what `check` rejects with.
   * Undefined if the answer takes time: then nothing has happened yet, and `check` has to be asked. The functions among the
   * options are called on them.
   */
  checkNow?(context: RequestContext, options?: CheckOptions): Decision | undefined
  /**
   * Optional: `checkNow` where rules look at nothing but an address, so that nothing else of a request has to be shown.
   * Undefined if they look at more, or the answer takes time: then nothing has happened yet.
   */
  checkAddress?(clientIp: string, options: CheckOptions): Decision | undefined
  /** Gives back what a check with the same arguments took. */
  refund(context: RequestContext, options?: Pick<CheckOptions, 'ruleSetId' | 'permits'>): Promise<void>
}
