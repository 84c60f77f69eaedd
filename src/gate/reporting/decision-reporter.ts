/**
 * Reports the decisions of limiters and of the limits of middleware to OpenTelemetry. All of them share their metrics, because a
 * program may create a limiter per tenant.
 */
import type { RateLimiter } from '../../core/decision/rate-limiter.js'
import type { Decision } from '../../core/decision.js'
import type { CheckOptions, Handler } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'
import { emitWarning } from '../../core/runtime/emit-warning.js'
import { addDecisionEvent } from '../../core/tracing/decision-event.js'
import { type MeterProvider, type OpenTelemetryApi, openTelemetryApi } from '../../core/tracing/open-telemetry.js'
import type { DecisionObserver } from '../../telemetry/decision-observer.js'
import type { TimedDecision } from './count-decisions.js'

/** Decisions that are made before the metrics are loaded. Bounded, in case they never are. */
const maxEarly = 10_000

type Decide = () => Decision | Promise<Decision>

const noContext: RequestContext = Object.freeze({})

const byProvider = new WeakMap<MeterProvider, DecisionReporter>()

/** Undefined without an OpenTelemetry SDK. The build for edge runtimes replaces this module. */
export function decisionReporter(): DecisionReporter | undefined {
  const api = openTelemetryApi()
  if (api === undefined) return undefined
  const provider = api.metrics.getMeterProvider()
  const reporter = byProvider.get(provider) ?? new DecisionReporter(api)
  byProvider.set(provider, reporter)
  return reporter
}

export class DecisionReporter {
  readonly #api: OpenTelemetryApi
  /** Counts decisions. Undefined until it is loaded. */
  #observer: DecisionObserver | undefined
  #early: TimedDecision[] = []

  constructor(api: OpenTelemetryApi) {
    this.#api = api
    this.#load().catch(emitWarning)
  }

  /** A limiter that decides as `limiter` does, and reports every decision. */
  limiter(limiter: Pick<RateLimiter, 'decide'>): Pick<RateLimiter, 'decide'> {
    return {
      decide: (ruleSetId, charges, options) =>
        this.#reported(noContext, options?.peek === true, () => limiter.decide(ruleSetId, charges, options)),
    }
  }

  /** Like `limiter`, for forced and partial charges. */
  variants(limiter: Pick<RateLimiter, 'decideVariant'>): Pick<RateLimiter, 'decideVariant'> {
    return {
      decideVariant: (ruleSetId, charge, variant, options) =>
        this.#reported(noContext, false, () => limiter.decideVariant(ruleSetId, charge, variant, options)),
    }
  }

  /** A handler that decides as `handler` does, and reports every decision. */
  handler(handler: Required<Handler>): Handler {
    const decide = (context: RequestContext, options?: CheckOptions) =>
      this.#reported(context, options?.peek === true, () => handler.decide(context, options))
    return {
      decide,
      check: async (context, options) => decide(context, options),
      refund: (context, options) => handler.refund(context, options),
      release: (holdId) => handler.release(holdId),
      renew: (holdId) => handler.renew(holdId),
    }
  }

  /** Returns what `decide` returns. Peeks are not reported. */
  #reported(context: RequestContext, isPeek: boolean, decide: Decide): Decision | Promise<Decision> {
    if (isPeek) return decide()
    const startedAt = (this.#observer?.isTiming ?? true) ? performance.now() : -1
    const decided = decide()
    if (!(decided instanceof Promise)) return this.#report(decided, context, startedAt)
    const sentAt = startedAt === -1 ? performance.now() : startedAt
    return decided.then((decision) => this.#report(decision, context, sentAt))
  }

  #report(decision: Decision, context: RequestContext, startedAt: number): Decision {
    const durationMs = startedAt === -1 ? -1 : performance.now() - startedAt
    if (this.#observer !== undefined) this.#observer.decided(decision, context, durationMs)
    else this.#reportEarly(decision, context, durationMs)
    return decision
  }

  /** The event is added now, because the span may have ended when the metrics are loaded. */
  #reportEarly(decision: Decision, context: RequestContext, durationMs: number): void {
    addDecisionEvent(this.#api, decision)
    if (this.#early.length < maxEarly) this.#early.push([decision, context, durationMs])
  }

  async #load(): Promise<void> {
    const { countDecisions } = await import('./count-decisions.js')
    this.#observer = countDecisions(this.#api, this.#early)
    this.#early = []
  }
}
