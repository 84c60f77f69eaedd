import { systemClock } from '../../core/clock.js'
import type { Decision } from '../../core/decision.js'
import type { RequestContext } from '../../core/request-context.js'
import type { OpenTelemetryApi } from '../../core/tracing/open-telemetry.js'
import type { DecisionObserver } from '../../telemetry/decision-observer.js'
import { reportMetrics } from '../../telemetry/open-telemetry/reported-metrics.js'
import { TracedObserver } from '../../telemetry/open-telemetry/traced-observer.js'
import { openMetrics } from './open-metrics.js'

/** A decision with its context, and its duration in milliseconds, negative if it was not measured. */
export type TimedDecision = readonly [decision: Decision, context: RequestContext, durationMs: number]

/** Counts decisions outside of gates as metrics of OpenTelemetry, beginning with `early`, and reports them as events of spans. */
export function countDecisions(api: OpenTelemetryApi, early: readonly TimedDecision[]): DecisionObserver {
  const { metrics, collect } = openMetrics(systemClock, api)
  // Gauges describe a gate.
  const source = reportMetrics(api, async () => (await collect()).filter(({ type }) => type === 'counter'))
  for (const [decision, context, durationMs] of early) {
    metrics.recorder.decided(decision, context, durationMs)
    if (durationMs >= 0) source.decided(durationMs)
  }
  return new TracedObserver(api, metrics.recorder, source)
}
