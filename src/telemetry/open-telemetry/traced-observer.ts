import type { Decision } from '../../core/decision.js'
import type { RequestContext } from '../../core/request-context.js'
import { addDecisionEvent } from '../../core/tracing/decision-event.js'
import { isSampled, type OpenTelemetryApi } from '../../core/tracing/open-telemetry.js'
import { type SampledTrace, sampledTraceOf } from '../../core/tracing/trace-id.js'
import type { DecisionObserver } from '../decision-observer.js'
import type { ReportedSource } from './reported-metrics.js'

/** Passes decisions on to an observer, and reports them to OpenTelemetry. */
export class TracedObserver implements DecisionObserver {
  readonly #api: OpenTelemetryApi
  readonly #observer: DecisionObserver
  readonly #source: Pick<ReportedSource, 'decided'>

  constructor(api: OpenTelemetryApi, observer: DecisionObserver, source: Pick<ReportedSource, 'decided'>) {
    this.#api = api
    this.#observer = observer
    this.#source = source
  }

  get isTiming(): boolean {
    return this.#observer.isTiming
  }

  decided(decision: Decision, context: RequestContext, durationMs: number): void {
    // Recording a duration costs more than counting a decision, so only samples are recorded.
    const isSample = this.#observer.isTiming
    this.#observer.decided(decision, context, durationMs)
    if (isSample && durationMs >= 0) this.#source.decided(durationMs)
    addDecisionEvent(this.#api, decision)
  }

  storeFailed(error: unknown): void {
    this.#observer.storeFailed(error)
  }
}

/** The active trace if it is sampled, else that of the request's headers. */
export const activeTrace =
  ({ trace }: OpenTelemetryApi) =>
  ({ headers }: RequestContext): SampledTrace | undefined => {
    const span = trace.getActiveSpan()
    if (!isSampled(span)) return sampledTraceOf(headers)
    const { traceId, spanId } = span.spanContext()
    return { traceId, spanId }
  }
