import { type Clock, systemClock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { Handler } from '../core/handler.js'
import { withoutOrigin } from '../core/matching/paths/normalise-path.js'
import type { RequestContext } from '../core/request-context.js'
import { type ClientIpOf, compileClientIp } from './client-ip/client-ip.js'
import type { EdgeHeaders, EdgeRequest } from './edge-request.js'
import type { GuardOptions, GuardOverrides } from './guard-options.js'
import { HeldRequest, HeldRequests } from './held-request.js'
import { compilePathFilter } from './path-filter.js'
import { closingProblem, type Problem, problemMediaType, rejectionProblem } from './problem.js'
import { RateLimitHeaders } from './rate-limit-headers.js'

/** The result of `Guard.admit`. */
export type Outcome =
  | {
      /** The application handles the request. */
      readonly kind: 'ALLOWED'
      /** Headers to set on the response. */
      readonly headers: Readonly<Record<string, string>>
      /** Undefined if the request was not counted. */
      readonly decision: Decision | undefined
      /** Refunds the charge. Present if the decision took time: the application may have sent the response before it. */
      readonly refund?: () => void
    }
  | Rejection
  /** No response can be sent any more. */
  | { readonly kind: 'ABORTED' }

/** The response to a rejected request. */
export interface Rejection {
  readonly kind: 'REJECTED'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly problem: Problem
  /** `problem` as JSON. */
  readonly body: string
}

const uncounted: Outcome = Object.freeze({ kind: 'ALLOWED', headers: Object.freeze({}), decision: undefined })
const aborted: Outcome = Object.freeze({ kind: 'ABORTED' })

/** The edge without a framework: a request becomes a context, and the handler's decision becomes headers, a delay or a rejection. */
export class Guard<Native = unknown> {
  /** True without `trustedProxies`: the framework's own setting then determines the client IP. */
  readonly usesFrameworkIp: boolean
  readonly #handler: Handler
  readonly #options: GuardOptions<Native>
  readonly #clientIpOf: ClientIpOf
  readonly #isLimited: ((path: string) => boolean) | undefined
  readonly #userIdHeader: string | undefined
  readonly #apiKeyHeader: string | undefined
  readonly #headers: RateLimitHeaders
  readonly #hasHooks: boolean
  readonly #clock: Clock
  readonly #held = new HeldRequests()

  constructor(handler: Handler, options: GuardOptions<Native> = {}) {
    this.#handler = handler
    this.usesFrameworkIp = options.trustedProxies === undefined
    this.#options = options
    this.#clientIpOf = compileClientIp(options)
    this.#isLimited = compilePathFilter(options)
    this.#userIdHeader = options.userIdHeader?.toLowerCase()
    this.#apiKeyHeader = options.apiKeyHeader?.toLowerCase()
    this.#headers = new RateLimitHeaders(options.headers ?? 'both')
    this.#hasHooks = options.skip !== undefined || options.customize !== undefined
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
    const { skip, customize } = this.#options
    if (skip !== undefined && (await skip(native))) return uncounted
    const customized = (await customize?.(context, native)) ?? context
    return request.isAborted?.() ? aborted : this.#decide(customized, request, native, overrides)
  }

  #decide(
    context: RequestContext,
    request: EdgeRequest,
    native: Native,
    overrides: GuardOverrides | undefined,
  ): Outcome | Promise<Outcome> {
    if (this.#held.isClosed) return closing()
    const { ruleSetId = this.#options.ruleSetId, permits = this.#options.permits } = overrides ?? noOverrides
    const cost = typeof permits === 'function' ? permits(native) : permits
    const held = new HeldRequest(this.#held, request, ruleSetId, cost)
    const handler = this.#handler
    if (handler.decide === undefined) return this.#finish(handler.check(context, held.asOptions()), held, context)
    const decision = handler.decide(context, held)
    return decision instanceof Promise || decision.delayMs > 0 || held.departure !== undefined
      ? this.#finish(decision, held, context)
      : this.#outcomeOf(decision, held.decidedAt)
  }

  /** Waits for the decision and for the delay of the request. */
  async #finish(deciding: Decision | Promise<Decision>, held: HeldRequest, context: RequestContext): Promise<Outcome> {
    try {
      const decision = await deciding
      if (!isDelayed(decision, held)) return this.#refundable(decision, held, context, held.decidedAt)
      const departure = await held.wait(decision.delayMs, this.#clock)
      if (departure === 'CLOSED' || (departure === 'ABORTED' && held.isClosed)) return closing()
      return departure === 'ABORTED' ? aborted : this.#refundable(decision, held, context)
    } finally {
      this.#held.remove(held)
    }
  }

  #refundable(decision: Decision, held: HeldRequest, context: RequestContext, nowMs?: number): Outcome {
    const outcome = this.#outcomeOf(decision, nowMs)
    return outcome.kind === 'ALLOWED' ? { ...outcome, refund: () => this.#refund(decision, held, context) } : outcome
  }

  /**
   * Refunds the charge of a request that gets no response. A degraded decision was not charged to the store. If the refund
   * fails, the permits return by refill: the request has no response left that could report the error.
   */
  async #refund({ degraded }: Decision, { ruleSetId, permits }: HeldRequest, context: RequestContext): Promise<void> {
    if (degraded) return
    try {
      await this.#handler.refund(context, { ruleSetId, permits })
    } catch {}
  }

  /** `nowMs` is the store's time where it is known, because clocks of processes may differ. */
  #outcomeOf(decision: Decision, nowMs = this.#clock.now()): Outcome {
    const headers = this.#headers.of(decision, nowMs)
    return decision.allowed ? { kind: 'ALLOWED', headers, decision } : rejection(rejectionProblem(decision), headers)
  }
}

const noOverrides: GuardOverrides = Object.freeze({})

/** Passes on the outcome of a decision that took time, and refunds the charge if no response can be sent any more. */
export function onAdmitted(
  admitted: Promise<Outcome>,
  isAborted: () => boolean,
  onOutcome: (outcome: Outcome) => void,
  onError: (error: unknown) => void,
): void {
  // In a microtask of its own: an error that the application throws in `onOutcome` must not become a rejection.
  admitted.then((outcome) => queueMicrotask(() => onOutcome(refundIfAborted(outcome, isAborted()))), onError)
}

/** Refunds an allowed request whose response was sent while it was decided. */
export function refundIfAborted(outcome: Outcome, isAborted: boolean): Outcome {
  if (!isAborted) return outcome
  if (outcome.kind === 'ALLOWED') outcome.refund?.()
  return aborted
}

/** True if the request has to wait: for its delay, or behind others in a waiting room. */
const isDelayed = ({ allowed, delayMs }: Decision, { departure }: HeldRequest): boolean =>
  allowed && (delayMs > 0 || departure !== undefined)

const closing = (): Outcome => rejection(closingProblem(), { 'Retry-After': '1' })

const rejection = (problem: Problem, headers: Readonly<Record<string, string>>): Outcome => ({
  kind: 'REJECTED',
  status: problem.status,
  headers: { ...headers, 'Content-Type': problemMediaType },
  problem,
  body: `${JSON.stringify(problem)}\n`,
})

/** Undefined for a missing or empty header. */
function textOf(value: EdgeHeaders[string]): string | undefined {
  if (value === undefined) return undefined
  return (typeof value === 'string' ? value : value.join(', ')).trim() || undefined
}
