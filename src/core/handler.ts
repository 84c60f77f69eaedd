import type { Decision } from './decision.js'
import type { RequestContext } from './request-context.js'
import type { Departure } from './waiting-room.js'

/** Options of a single check. */
export interface CheckOptions {
  /** Default: the configured default rule set, else the only rule set, else the one with the id `default`. */
  readonly ruleSetId?: string | undefined
  /** The number of permits to take, multiplied by the `permits` of each rule. Default 1. */
  readonly permits?: number | undefined
  /** Returns the decision that would be made, without charging any bucket. Default false. */
  readonly peek?: boolean | undefined
  /** Aborting it while a delayed request still waits refunds the permits. A function is called only for a request that is delayed. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined
  /** Called with the store's time of the decision in epoch milliseconds. Handlers that do not know this time do not call it. */
  readonly onDecided?: ((atMs: number) => void) | undefined
  /** Called when the request has to wait, before the check returns. Handlers without a waiting room do not call it. */
  readonly onEnter?: (() => void) | undefined
  /** Called when the wait ends: the request may proceed, was aborted, or is rejected because the gate closes. */
  readonly onLeave?: ((how: Departure) => void) | undefined
}

/** Makes decisions: in this process (`StandaloneHandler`) or by asking a server over HTTP (`HttpHandler`). */
export interface Handler {
  /** Decides about a request and charges its buckets. */
  check(context: RequestContext, options?: CheckOptions): Promise<Decision>
  /**
   * Optional synchronous `check`, which saves the cost of a promise. Throws the errors that `check` rejects with. Returns
   * undefined if a decision needs I/O; nothing was charged then, and the caller must use `check`. Callback options are called
   * as methods of `options`.
   */
  checkNow?(context: RequestContext, options?: CheckOptions): Decision | undefined
  /**
   * Optional `checkNow` for rules that depend on the client address only, so that the caller need not build a context. Returns
   * undefined if the rules depend on more or a decision needs I/O; nothing was charged then.
   */
  checkAddress?(clientIp: string, options: CheckOptions): Decision | undefined
  /** Returns the permits that a check with the same arguments took. */
  refund(context: RequestContext, options?: Pick<CheckOptions, 'ruleSetId' | 'permits'>): Promise<void>
}
