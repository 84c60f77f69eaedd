import { type Clock, systemClock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'
import type { Handler } from '../core/handler.js'
import { type HoldHandler, keepHold } from '../core/holds/keep-hold.js'
import { withoutOrigin } from '../core/matching/paths/normalise-path.js'
import type { RequestContext } from '../core/request-context.js'
import { maxCapacity } from '../core/rule.js'
import { emitWarning } from '../core/runtime/emit-warning.js'
import { wrongValue } from '../validation/kind.js'
import { type ClientIpOf, compileClientIp } from './client-ip/client-ip.js'
import type { EdgeHeaders, EdgeRequest } from './edge-request.js'
import type { CountedResponse, GuardOptions, GuardOverrides, RejectionHandler } from './guard-options.js'
import { HeldRequest, HeldRequests } from './held-request.js'
import { compilePathFilter } from './path-filter.js'
import { rejectionProblem } from './problem-document.js'
import { RateLimitHeaders } from './rate-limit-headers.js'
import { closing, ownRejection, type Rejection, rejection } from './rejection.js'

/** The result of `Guard.admit`. */
export type Outcome =
  | {
      /** The application handles the request. */
      readonly kind: 'ALLOWED'
      /** Headers to set on the response. */
      readonly headers: Readonly<Record<string, string>>
      /** Undefined if the request was not counted. */
      readonly decision: Decision | undefined
      /** Refunds the charge. Present if the charge depends on the response, or if the response may have been sent already. */
      readonly refund?: () => void
      /**
       * Frees the slots that the request occupies under a CONCURRENCY rule. The guard calls it by itself if the edge request has
       * `onEnd`. Further calls have no effect.
       */
      readonly release?: () => void
    }
  | Rejection
  /** No response can be sent any more. */
  | { readonly kind: 'ABORTED' }

const uncounted: Outcome = Object.freeze({ kind: 'ALLOWED', headers: Object.freeze({}), decision: undefined })
const aborted: Outcome = Object.freeze({ kind: 'ABORTED' })

/** The edge without a framework: a request becomes a context, and the handler's decision becomes headers, a delay or a rejection. */
export class Guard<Native = unknown, Reply = unknown> {
  /** True if charges depend on the response: the adapter then calls `onResponse`. */
  readonly countsByResponse: boolean
  /** Sends rejections that have a decision, in place of the adapter. */
  readonly onRejected: RejectionHandler<Native, Reply> | undefined
  /** True without `trustedProxies`: the framework's own setting then determines the client IP. */
  readonly usesFrameworkIp: boolean
  readonly #handler: Handler
  readonly #options: GuardOptions<Native, Reply>
  readonly #clientIpOf: ClientIpOf
  readonly #isLimited: ((path: string) => boolean) | undefined
  readonly #userIdHeader: string | undefined
  readonly #apiKeyHeader: string | undefined
  readonly #headers: RateLimitHeaders
  readonly #hasHooks: boolean
  readonly #hasOwnRejection: boolean
  readonly #clock: Clock
  readonly #held = new HeldRequests()

  constructor(handler: Handler, options: GuardOptions<Native, Reply> = {}) {
    this.#handler = handler
    this.countsByResponse = options.countWhen !== undefined
    this.onRejected = options.onRejected
    this.usesFrameworkIp = options.trustedProxies === undefined
    this.#options = options
    this.#clientIpOf = compileClientIp(options)
    this.#isLimited = compilePathFilter(options)
    this.#userIdHeader = options.userIdHeader?.toLowerCase()
    this.#apiKeyHeader = options.apiKeyHeader?.toLowerCase()
    this.#headers = new RateLimitHeaders(options.headers ?? 'both')
    const { skip, customize, key, costs, permits, statusCode, message, onRejected } = options
    this.#hasHooks = isAnyGiven(skip, customize, key, costs) || typeof permits === 'function'
    this.#hasOwnRejection = isAnyGiven(statusCode, message, onRejected)
    this.#clock = options.clock ?? systemClock
  }

  /**
   * Returns the outcome at once where no I/O is needed, so that the application is called in the same tick. Never throws:
   * errors of the handler and of hooks are rejections.
   */
  admit(request: EdgeRequest, native: Native, overrides?: GuardOverrides): Outcome | Promise<Outcome> {
    try {
      const context = this.#contextOf(request)
      if (this.#isLimited !== undefined && !this.#isLimited(context.path as string)) return uncounted
      if (request.isAborted?.()) return aborted
      return this.#hasHooks
        ? this.#runHooks(context, request, native, overrides)
        : this.#decide(context, request, native, overrides)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Rejects and refunds the requests that are held, and rejects every later one. */
  close(): void {
    this.#held.close()
  }

  #contextOf({ method, url, headers, remoteAddress }: EdgeRequest): RequestContext {
    const userIdHeader = this.#userIdHeader
    const apiKeyHeader = this.#apiKeyHeader
    return {
      clientIp: this.#clientIpOf(remoteAddress, headers),
      userId: userIdHeader && textOf(headers[userIdHeader]),
      apiKey: apiKeyHeader && textOf(headers[apiKeyHeader]),
      method,
      path: url.startsWith('/') ? url : withoutOrigin(url) || '/',
      headers,
    }
  }

  async #runHooks(
    context: RequestContext,
    request: EdgeRequest,
    native: Native,
    overrides: GuardOverrides | undefined,
  ): Promise<Outcome> {
    const { skip, customize, key } = this.#options
    if (skip !== undefined && (await skip(native))) return uncounted
    const customized = (await customize?.(context, native)) ?? context
    const keyed = key === undefined ? customized : { ...customized, key: keyOf(await key(native)) }
    const { permits = this.#options.permits } = overrides ?? noOverrides
    const cost = typeof permits === 'function' ? await permits(native) : permits
    if (cost === undefined && permits !== undefined) throw permitsMissing()
    const costs = await this.#options.costs?.(native)
    if (cost === 0 && costs === undefined) return uncounted
    return request.isAborted?.()
      ? aborted
      : this.#decide(keyed, request, native, { ...overrides, permits: cost, costs })
  }

  #decide(
    context: RequestContext,
    request: EdgeRequest,
    native: Native,
    overrides: GuardOverrides | undefined,
  ): Outcome | Promise<Outcome> {
    if (this.#held.isClosed) return closing()
    const { ruleSetId = this.#options.ruleSetId, permits = this.#options.permits } = overrides ?? noOverrides
    // `permits` is a number here: a function was called before.
    const held = new HeldRequest(this.#held, request, ruleSetId, permits as number | undefined, overrides?.costs)
    const handler = this.#handler
    if (handler.decide === undefined)
      return this.#finish(handler.check(context, held.asOptions()), held, context, native)
    const decision = handler.decide(context, held)
    if (decision instanceof Promise || decision.delayMs > 0 || held.departure !== undefined)
      return this.#finish(decision, held, context, native)
    return this.countsByResponse || decision.holdId !== undefined
      ? this.#refundable(decision, held, context, native)
      : this.#outcomeOf(decision, native)
  }

  /** Waits for the decision and for the delay of the request. */
  async #finish(
    deciding: Decision | Promise<Decision>,
    held: HeldRequest,
    context: RequestContext,
    native: Native,
  ): Promise<Outcome> {
    try {
      const decision = await deciding
      if (!isDelayed(decision, held)) return this.#refundable(decision, held, context, native)
      const startMs = this.#clock.now()
      const departure = await held.wait(decision.delayMs, this.#clock)
      if (departure !== 'RELEASED') this.#releaseUnused(decision)
      if (departure === 'CLOSED' || (departure === 'ABORTED' && held.isClosed)) return closing()
      if (departure === 'ABORTED') return aborted
      return this.#refundable(decision, held, context, native, this.#clock.now() - startMs)
    } catch (error) {
      // The wait for a slot of a CONCURRENCY rule rejects when its client leaves or the guard closes.
      if (held.aborting?.signal.aborted !== true || error !== held.aborting.signal.reason) throw error
      return held.isClosed ? closing() : aborted
    } finally {
      this.#held.remove(held)
    }
  }

  #refundable(
    decision: Decision,
    held: HeldRequest,
    context: RequestContext,
    native: Native,
    heldMs = 0,
  ): Outcome | Promise<Outcome> {
    const outcome = this.#outcomeOf(decision, native, heldMs)
    if (outcome instanceof Promise || outcome.kind !== 'ALLOWED') return outcome
    const refund = (): void => void this.#refund(decision, held, context)
    const release = this.#hold(decision, held)
    return release === undefined ? { ...outcome, refund } : { ...outcome, refund, release }
  }

  /** Renews the hold of a request until its response ends. Returns the function that releases it. */
  #hold(decision: Decision, { request }: HeldRequest): (() => void) | undefined {
    const { release, renew } = this.#handler
    if (decision.holdId === undefined || release === undefined || renew === undefined) return undefined
    const held = keepHold(this.#handler as HoldHandler, decision)
    // A hold that could not be released expires.
    const end = (): void => void held.release().catch(() => {})
    request.onEnd?.(end)
    return end
  }

  /** Releases the hold of a request that left before it was released. */
  #releaseUnused({ holdId }: Decision): void {
    if (holdId !== undefined) this.#handler.release?.(holdId).catch(() => {})
  }

  /**
   * Refunds the charge of a request that does not count. A degraded decision was not charged to the store. If the refund fails,
   * the permits return by refill: there is no response left that could report the error.
   */
  async #refund(
    { degraded }: Decision,
    { ruleSetId, permits, costs }: HeldRequest,
    context: RequestContext,
  ): Promise<void> {
    if (degraded) return
    try {
      await this.#handler.refund(context, { ruleSetId, permits, costs })
    } catch {}
  }

  /** Headers are relative to the store's time, because clocks of processes may differ. Handlers of other packages may not know it. */
  #outcomeOf(decision: Decision, native: Native, heldMs = 0): Outcome | Promise<Outcome> {
    const headers = this.#headers.of(decision, (decision.decidedAt ?? this.#clock.now()) + heldMs)
    if (decision.allowed) return { kind: 'ALLOWED', headers, decision }
    return this.#hasOwnRejection
      ? ownRejection(this.#options, decision, headers, native)
      : rejection(rejectionProblem(decision), headers, decision)
  }

  /** Refunds a request whose response does not count. Never throws: the response has been sent. */
  async onResponse(outcome: Outcome, status: number, native: Native): Promise<void> {
    if (outcome.kind !== 'ALLOWED' || outcome.decision === undefined) return
    const response: CountedResponse = { status, decision: outcome.decision }
    try {
      if ((await this.#options.countWhen?.(response, native)) === false) outcome.refund?.()
    } catch (error) {
      emitWarning(error instanceof Error ? error : String(error))
    }
  }
}

const permitsMissing = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `The result of permits(request) ${wrongValue(undefined, `an integer from 0 to ${maxCapacity}`)}.`,
  )

/** The key that a hook has returned; empty for none. Identifiers are often numbers, as in a database. */
function keyOf(result: unknown): string {
  if (typeof result === 'string') return result
  if (result == null) return ''
  if (Number.isFinite(result) || typeof result === 'bigint') return String(result)
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `The result of key(request) ${wrongValue(result, 'a string, a number, or undefined for a request without a key')}.`,
  )
}

const isAnyGiven = (...options: readonly unknown[]): boolean => options.some((option) => option !== undefined)

const noOverrides: GuardOverrides = Object.freeze({})

/** Passes on the outcome of an asynchronous decision, and refunds the charge if no response can be sent any more. */
export function onAdmitted(
  admitted: Promise<Outcome>,
  isAborted: () => boolean,
  onOutcome: (outcome: Outcome) => void,
  onError: (error: unknown) => void,
): void {
  // Two arguments, because an error that the application throws in `onOutcome` is not the limiter's. It stays unhandled, which
  // ends the process as an uncaught exception does. `queueMicrotask` would throw it directly, but fake timers of tests replace it.
  admitted.then((outcome) => onOutcome(refundIfAborted(outcome, isAborted())), onError)
}

/** Refunds an allowed request whose response was sent while it was decided. */
export function refundIfAborted(outcome: Outcome, isAborted: boolean): Outcome {
  if (!isAborted) return outcome
  if (outcome.kind === 'ALLOWED') {
    outcome.refund?.()
    outcome.release?.()
  }
  return aborted
}

/** True if the request has to wait: for its delay, or behind others in a waiting room. */
const isDelayed = ({ allowed, delayMs }: Decision, { departure }: HeldRequest): boolean =>
  allowed && (delayMs > 0 || departure !== undefined)

/** Undefined for a missing or empty header. */
function textOf(value: EdgeHeaders[string]): string | undefined {
  if (value === undefined) return undefined
  return (typeof value === 'string' ? value : value.join(', ')).trim() || undefined
}
