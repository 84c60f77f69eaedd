import { type Clock, systemClock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { Departure } from '../core/waiting/waiting-room.js'
import { type ClientIpOf, type ClientIpOptions, compileClientIp } from './client-ip/client-ip.js'
import { type EdgeHeaders, type EdgeRequest, pathOf } from './edge-request.js'
import { type HeaderChoice, rateLimitHeaders } from './headers/headers.js'
import { hold } from './hold.js'
import { compilePathFilter, type PathFilterOptions } from './path-filter.js'
import { closingProblem, type Problem, problemMediaType, refusalProblem } from './problem.js'
import { Check, Stay, Stays } from './stay.js'

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
  | Refusal
  | { readonly kind: 'GONE' }

export interface Refusal {
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
  /** Of all who are decided on by their address alone, one after the other; undefined if the handler always looks at more. */
  readonly #addressCheck: Check | undefined
  readonly #stays = new Stays()

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
    if (handler.checkAddress !== undefined && typeof this.#permits !== 'function')
      this.#addressCheck = new Check(this.#ruleSetId, this.#permits)
  }

  async admit(request: EdgeRequest, native: Native, overrides?: GuardOverrides): Promise<Outcome> {
    return this.admitNow(request, native, overrides)
  }

  /** At once where nothing takes time: then the application is called in the same tick, as it would be without a limit. */
  admitNow(request: EdgeRequest, native: Native, overrides?: GuardOverrides): Outcome | Promise<Outcome> {
    if (this.#isLimited !== undefined && !this.#isLimited(pathOf(request.url))) return uncounted
    if (request.isGone?.()) return gone
    if (this.#hasHooks) return this.#admitByHooks(request, native, overrides)
    const clientIp = this.#clientIp(request)
    const outcome = overrides === undefined ? this.#askByAddress(clientIp) : undefined
    return outcome ?? this.#ask(this.#contextOf(request, clientIp), request, native, overrides)
  }

  /** Calls back as `admitNow` answers. What `onOutcome` throws is not caught: it is an error of the application. */
  admitThen(
    request: EdgeRequest,
    native: Native,
    overrides: GuardOverrides | undefined,
    onOutcome: (outcome: Outcome) => void,
    onError: (error: unknown) => void,
  ): void {
    let outcome: Outcome | Promise<Outcome>
    try {
      outcome = this.admitNow(request, native, overrides)
    } catch (error) {
      onError(error)
      return
    }
    if (outcome instanceof Promise) whenAdmitted(outcome, () => request.isGone?.() === true, onOutcome, onError)
    else onOutcome(outcome)
  }

  /** Refuses those who are held, with their permits given back, and everybody who comes later. */
  close(): void {
    this.#stays.close()
  }

  #clientIp({ remoteAddress, headers }: EdgeRequest): string | undefined {
    return this.#clientIpOf(remoteAddress, headers)
  }

  #contextOf({ method, url, headers }: EdgeRequest, clientIp: string | undefined): RequestContext {
    return {
      clientIp,
      userId: textOf(headers, this.#userIdHeader),
      apiKey: textOf(headers, this.#apiKeyHeader),
      method,
      path: pathOf(url),
      headers,
    }
  }

  async #admitByHooks(request: EdgeRequest, native: Native, overrides?: GuardOverrides): Promise<Outcome> {
    const { skip, customize } = this.#options
    // Before anything is waited for: a client that leaves takes its address along.
    const context = this.#contextOf(request, this.#clientIp(request))
    if (skip !== undefined && (await skip(native))) return uncounted
    const asked = (await customize?.(context, native)) ?? context
    return request.isGone?.() ? gone : this.#ask(asked, request, native, overrides)
  }

  /** The usual limit: one rule for all, by address. Undefined if there is more to it. */
  #askByAddress(clientIp: string | undefined): Outcome | undefined {
    const check = this.#addressCheck
    if (check === undefined || clientIp === undefined || this.#stays.isClosed) return undefined
    check.decidedAt = undefined
    const decision = this.#handler.checkAddress?.(clientIp, check)
    return decision && this.#outcomeOf(decision, check.decidedAt)
  }

  #ask(
    context: RequestContext,
    request: EdgeRequest,
    native: Native,
    overrides: GuardOverrides | undefined,
  ): Outcome | Promise<Outcome> {
    if (this.#stays.isClosed) return closing()
    const ruleSetId = overrides?.ruleSetId ?? this.#ruleSetId
    const stay = new Stay(this.#stays, request, ruleSetId, overrides?.permits ?? this.#permitsOf(native))
    const decision = this.#handler.checkNow?.(context, stay)
    if (decision === undefined) return this.#admitLater(this.#handler.check(context, stay.asOptions()), stay, context)
    return isHeld(decision, stay)
      ? this.#admitLater(decision, stay, context)
      : this.#outcomeOf(decision, stay.decidedAt)
  }

  async #admitLater(deciding: Decision | Promise<Decision>, stay: Stay, context: RequestContext): Promise<Outcome> {
    try {
      const decision = await deciding
      if (!isHeld(decision, stay)) return this.#lateOutcomeOf(decision, stay, context, stay.decidedAt)
      const how = await this.#held(decision, stay)
      if (how === 'CLOSED' || (how === 'ABORTED' && stay.isSentAway)) return closing()
      return how === 'ABORTED' ? gone : this.#lateOutcomeOf(decision, stay, context)
    } finally {
      this.#stays.end(stay)
    }
  }

  #lateOutcomeOf(decision: Decision, stay: Stay, context: RequestContext, nowMs?: number): Outcome {
    const outcome = this.#outcomeOf(decision, nowMs)
    return outcome.kind === 'PASS' ? { ...outcome, giveBack: () => this.#giveBack(decision, stay, context) } : outcome
  }

  /**
   * Refunds the charge of a request that gets no response. A degraded decision was not charged to the store. If the refund
   * fails, the permits come back by refill: the request has no response left that could report the error.
   */
  async #giveBack({ degraded }: Decision, { ruleSetId, permits }: Stay, context: RequestContext): Promise<void> {
    if (degraded) return
    try {
      await this.#handler.refund(context, { ruleSetId, permits })
    } catch {}
  }

  /** A handler that keeps a waiting room says when; one that is far away has only said for how long. */
  async #held({ delayMs }: Decision, stay: Stay): Promise<Departure> {
    if (stay.left !== undefined) return stay.left
    return (await hold(delayMs, stay.signal(), this.#clock)) ? 'RELEASED' : 'ABORTED'
  }

  /** Told by the clock that has decided, where that is known: others may go wrong. Nor is one read for every request then. */
  #outcomeOf(decision: Decision, nowMs = this.#clock.now()): Outcome {
    const headers = rateLimitHeaders(decision, this.#headers, nowMs)
    return decision.allowed ? { kind: 'PASS', headers, decision } : refusal(refusalProblem(decision), headers)
  }

  #permitsOf(native: Native): number | undefined {
    const permits = this.#permits
    return typeof permits === 'function' ? permits(native) : permits
  }
}

/** Calls back later as `admitThen` does. `isGone` is asked in the same tick in which the outcome is used. */
export function whenAdmitted(
  outcome: Promise<Outcome>,
  isGone: () => boolean,
  onOutcome: (outcome: Outcome) => void,
  onError: (error: unknown) => void,
): void {
  outcome.then((later) => queueMicrotask(() => onOutcome(unlessGone(later, isGone()))), onError)
}

/** The outcome of a decision that took time. If the response was sent meanwhile, the charge is refunded. */
export function unlessGone(outcome: Outcome, isGone: boolean): Outcome {
  if (!isGone) return outcome
  if (outcome.kind === 'PASS') outcome.giveBack?.()
  return gone
}

const isHeld = ({ allowed, delayMs }: Decision, { left }: Stay): boolean =>
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
