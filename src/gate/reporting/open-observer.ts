import type { Clock } from '../../core/clock.js'
import { type OpenTelemetryApi, openTelemetryApi } from '../../core/tracing/open-telemetry.js'
import type { DecisionObserver } from '../../telemetry/decision-observer.js'
import type { GateMetrics } from '../../telemetry/gate-metrics.js'
import type { CollectedMetric } from '../../telemetry/metrics.js'

/** The telemetry of a program that counts decisions by itself. */
export interface GivenObserver {
  readonly observer?: DecisionObserver | undefined
  /** The metrics that the observer counts, for OpenTelemetry. */
  readonly collectMetrics?: (() => Promise<readonly CollectedMetric[]>) | undefined
}

export interface GateObserver {
  /** Undefined if nothing observes the decisions of the gate. */
  readonly observer: DecisionObserver | undefined
  /** Undefined unless this module counts the decisions. */
  readonly metrics?: GateMetrics
  close(): Promise<void>
}

/** Opens the observer of the decisions of a gate. Modules are loaded only if metrics are on, or if an OpenTelemetry SDK is registered. */
export async function openObserver(
  isCounting: boolean,
  clock: Clock,
  { observer, collectMetrics }: GivenObserver,
): Promise<GateObserver> {
  const api = openTelemetryApi()
  if (observer !== undefined)
    return api === undefined ? { observer, close } : report(api, observer, collectMetrics ?? (async () => []))
  if (api === undefined && !isCounting) return { observer, close }
  const { openMetrics } = await import('./open-metrics.js')
  const { metrics, collect } = openMetrics(clock, api)
  const { recorder } = metrics
  const reporting = api && (await report(api, recorder, collect))
  return {
    observer: reporting?.observer ?? recorder,
    metrics,
    async close() {
      metrics.close()
      await reporting?.close()
    },
  }
}

const close = async (): Promise<void> => {}

/** Reports decisions to OpenTelemetry as well. */
async function report(
  api: OpenTelemetryApi,
  observer: DecisionObserver,
  collect: () => Promise<readonly CollectedMetric[]>,
): Promise<GateObserver> {
  const { reportMetrics } = await import('../../telemetry/open-telemetry/reported-metrics.js')
  const { TracedObserver } = await import('../../telemetry/open-telemetry/traced-observer.js')
  const source = reportMetrics(api, collect)
  return { observer: new TracedObserver(api, observer, source), close: () => source.remove() }
}
