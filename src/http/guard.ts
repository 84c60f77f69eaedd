import { type Clock, systemClock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { Departure } from '../core/waiting/waiting-room.js'
import { type ClientIpOf, type ClientIpOptions, compileClientIp } from './client-ip/client-ip.js'
import { type EdgeHeaders, type EdgeRequest, pathOf } from './edge-request.js'
import { type HeaderChoice, rateLimitHeaders } from './headers/headers.js'
import { HeldRequest, HeldRequests } from './held-request.js'
import { hold } from './hold.js'
import { compilePathFilter, type PathFilterOptions } from './path-filter.js'
import { closingProblem, type Problem, problemMediaType, rejectionProblem } from './problem.js'

/** What a hook is given: the request of the framework in use. */
export interface GuardOptions<Native = unknown> extends ClientIpOptions, PathFilterOptions {
  readonly ruleSetId?: string | undefined
  /** What one request costs, times the rule's `permits`; default 1. */
  readonly permits?: number | ((request: Native) => number) | undefined
  /** The headers that hold the user and the API key. Neither is read unless it is named: clients can write anything into it. */
  readonly userIdHeader?: string | undefined
  readonly apiKeyHeader?: string | undefined
  /** Which headers tell of limits; default both kinds. */
  readonly headers?: HeaderChoice | undefined
  /** True lets a request pass without counting it. */
  readonly skip?: ((request: Native) => boolean | Promise<boolean>) | undefined
  /** Adds to the context of a request, or replaces it. */
  readonly customize?: ContextCustomizer<Native> | undefined
  readonly clock?: Clock | undefined
}

/** May change anything about what is decided on. Called once per request, before the decision. */
export type ContextCustomizer<Native = unknown> = (
  context: RequestContext,
  request: Native,
) => RequestContext | undefined | Promise<RequestContext | undefined>

/** What one place, such as a route, wants otherwise. */
export type GuardOverrides = Pick<CheckOptions, 'ruleSetId' | 'permits'>

/** Pass on, with these headers on the response; or answer so; or do nothing, because nobody is there any more. */
export type Outcome =
  | {
      readonly kind: 'PASS'
      readonly headers: Readonly<Record<string, string>>
      readonly decision: Decision | undefined
      /** Refunds the charge. Present if the decision took time, so that the response may have been sent meanwhile. */
      readonly giveBack?: () => void
    }
  | Rejection
  | { readonly kind: 'GONE' }

export interface Rejection {
  readonly kind: 'REFUSE'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** What `body` says. */
  readonly problem: Problem
  readonly body: string
}

const uncounted: Outcome = Object.freeze({ kind: 'PASS', headers: Object.freeze({}), decision: undefined })
const gone: Outcome = Object.freeze({ kind: 'GONE' })

/**
 * The edge without a framework: a request becomes a context, a handler decides, and the decision becomes headers, a delay or
 * a refusal. What the application does afterwards is none of its business.
 */
export class Guard<Native = unknown> {
  /** True if no `trustedProxies` are given: then the framework's own setting says which proxies to trust. */
  readonly followsFramework: boolean
  readonly #handler: Handler
  readonly #options: GuardOptions<Native>
  readonly #clientIpOf: ClientIpOf
  readonly #isLimited: ((path: string) => boolean) | undefined
  readonly #userIdHeader: string | undefined
  readonly #apiKeyHeader: string | undefined
  readonly #headers: HeaderChoice
  readonly #ruleSetId: string | undefined
  readonly #permits: GuardOptions<Native>['permits']
  readonly #hasHooks: boolean
  readonly #clock: Clock
  readonly #held = new HeldRequests()

  constructor(handler: Handler, options: GuardOptions<Native> = {}) {
    this.#handler = handler
    this.followsFramework = options.trustedProxies === undefined
    this.#options = options
    this.#clientIpOf = compileClientIp(options)
    this.#isLimited = compilePathFilter(options)
    this.#userIdHeader = options.userIdHeader?.toLowerCase()
    this.#apiKeyHeader = options.apiKeyHeader?.toLowerCase()
    this.#headers = options.headers ?? 'both'
    this.#ruleSetId = options.ruleSetId
    this.#permits = options.permits
    this.#hasHooks = options.skip !== undefined || options.customize !== undefined
    this.#clock = options.clock ?? systemClock
  }

  /** Returns at once where no I/O is needed, so that the application is called in the same tick. */
  admit(request: EdgeRequest, native: Native, overrides?: GuardOverrides): Outcome | Promise<Outcome> {
    if (this.#isLimited !== undefined && !this.#isLimited(pathOf(request.url))) return uncounted
    if (request.isGone?.()) return gone
    return this.#hasHooks
      ? this.#admitByHooks(request, native, overrides)
      : this.#ask(this.#contextOf(request), request, native, overrides)
  }

  /** Rejects and refunds the requests that are held, and rejects every later one. */
  close(): void {
    this.#held.close()
  }

  #contextOf({ method, url, headers, remoteAddress }: EdgeRequest): RequestContext {
    return {
      clientIp: this.#clientIpOf(remoteAddress, headers),
      userId: textOf(headers, this.#userIdHeader),
      apiKey: textOf(headers, this.#apiKeyHeader),
      method,
      path: pathOf(url),
      headers,
    }
  }

  async #admitByHooks(request: EdgeRequest, native: Native, overrides?: GuardOverrides): Promise<Outcome> {
    const { skip, customize } = this.#options
    // Before the first await: the address is unknown once the client has disconnected.
    const context = this.#contextOf(request)
    if (skip !== undefined && (await skip(native))) return uncounted
    const asked = (await customize?.(context, native)) ?? context
    return request.isGone?.() ? gone : this.#ask(asked, request, native, overrides)
  }

  #ask(
    context: RequestContext,
    request: EdgeRequest,
    native: Native,
    overrides: GuardOverrides | undefined,
  ): Outcome | Promise<Outcome> {
    if (this.#held.isClosed) return closing()
    const ruleSetId = overrides?.ruleSetId ?? this.#ruleSetId
    const held = new HeldRequest(this.#held, request, ruleSetId, overrides?.permits ?? this.#permitsOf(native))
    const handler = this.#handler
    if (handler.decide === undefined) return this.#admitLater(handler.check(context, held.asOptions()), held, context)
    const decided = handler.decide(context, held)
    return decided instanceof Promise || isHeld(decided, held)
      ? this.#admitLater(decided, held, context)
      : this.#outcomeOf(decided, held.decidedAt)
  }

  async #admitLater(
    deciding: Decision | Promise<Decision>,
    held: HeldRequest,
    context: RequestContext,
  ): Promise<Outcome> {
    try {
      const decision = await deciding
      if (!isHeld(decision, held)) return this.#lateOutcomeOf(decision, held, context, held.decidedAt)
      const how = await this.#wait(decision, held)
      if (how === 'CLOSED' || (how === 'ABORTED' && held.isClosed)) return closing()
      return how === 'ABORTED' ? gone : this.#lateOutcomeOf(decision, held, context)
    } finally {
      this.#held.end(held)
    }
  }

  #lateOutcomeOf(decision: Decision, held: HeldRequest, context: RequestContext, nowMs?: number): Outcome {
    const outcome = this.#outcomeOf(decision, nowMs)
    return outcome.kind === 'PASS' ? { ...outcome, giveBack: () => this.#giveBack(decision, held, context) } : outcome
  }

  /**
   * Refunds the charge of a request that gets no response. A degraded decision was not charged to the store. If the refund
   * fails, the permits come back by refill: the request has no response left that could report the error.
   */
  async #giveBack({ degraded }: Decision, { ruleSetId, permits }: HeldRequest, context: RequestContext): Promise<void> {
    if (degraded) return
    try {
      await this.#handler.refund(context, { ruleSetId, permits })
    } catch {}
  }

  /** A handler with a waiting room reports the release. Otherwise only the delay is known. */
  async #wait({ delayMs }: Decision, held: HeldRequest): Promise<Departure> {
    if (held.left !== undefined) return held.left
    return (await hold(delayMs, held.signal(), this.#clock)) ? 'RELEASED' : 'ABORTED'
  }

  /** `nowMs` is the store's time where it is known: clocks of processes may differ. */
  #outcomeOf(decision: Decision, nowMs = this.#clock.now()): Outcome {
    const headers = rateLimitHeaders(decision, this.#headers, nowMs)
    return decision.allowed ? { kind: 'PASS', headers, decision } : refusal(rejectionProblem(decision), headers)
  }

  #permitsOf(native: Native): number | undefined {
    const permits = this.#permits
    return typeof permits === 'function' ? permits(native) : permits
  }
}

/**
 * Passes the outcome to a callback, in the same tick if possible. Errors of `admit` go to `onError`. Errors of `onOutcome` are
 * the application's own and are not caught.
 */
export function onAdmitted(
  admit: () => Outcome | Promise<Outcome>,
  isGone: () => boolean,
  onOutcome: (outcome: Outcome) => void,
  onError: (error: unknown) => void,
): void {
  let outcome: Outcome | Promise<Outcome>
  try {
    outcome = admit()
  } catch (error) {
    onError(error)
    return
  }
  if (outcome instanceof Promise)
    // In a microtask of its own, so that an error of `onOutcome` does not become a rejection.
    outcome.then((later) => queueMicrotask(() => onOutcome(unlessGone(later, isGone()))), onError)
  else onOutcome(outcome)
}

/** The outcome of a decision that took time. If the response was sent meanwhile, the charge is refunded. */
export function unlessGone(outcome: Outcome, isGone: boolean): Outcome {
  if (!isGone) return outcome
  if (outcome.kind === 'PASS') outcome.giveBack?.()
  return gone
}

const isHeld = ({ allowed, delayMs }: Decision, { left }: HeldRequest): boolean =>
  allowed && (delayMs > 0 || left !== undefined)

const closing = (): Outcome => refusal(closingProblem(), { 'Retry-After': '1' })

const refusal = (problem: Problem, headers: Readonly<Record<string, string>>): Outcome => ({
  kind: 'REFUSE',
  status: problem.status,
  headers: { ...headers, 'Content-Type': problemMediaType },
  problem,
  body: `${JSON.stringify(problem)}\n`,
})

/** A header that is empty says nothing. */
function textOf(headers: EdgeHeaders, name: string | undefined): string | undefined {
  const value = name === undefined ? undefined : headers[name]
  if (value === undefined) return undefined
  return (typeof value === 'string' ? value : value.join(', ')).trim() || undefined
}
