import type { Clock } from '../../core/clock.js'
import type { OpenTelemetryApi } from '../../core/tracing/open-telemetry.js'
import { GateMetrics } from '../../telemetry/gate-metrics.js'
import { type CollectedMetric, collectMetrics } from '../../telemetry/metrics.js'
import { activeTrace } from '../../telemetry/open-telemetry/traced-observer.js'

/** Metrics of a gate, or of decisions outside of gates. Their exemplars name the active trace if there is an API. */
export function openMetrics(
  clock: Clock,
  api: OpenTelemetryApi | undefined,
): { readonly metrics: GateMetrics; readonly collect: () => Promise<readonly CollectedMetric[]> } {
  const metrics = new GateMetrics(clock, api && activeTrace(api))
  return { metrics, collect: async () => collectMetrics(await metrics.source()) }
}
