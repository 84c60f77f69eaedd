import type { FluxGate } from './gate/flux-gate.js'
import type { Exemplar } from './telemetry/exemplar.js'
import { type MetricName, metricFamilies } from './telemetry/metrics.js'

/** The part of a prom-client `Registry` that the collector uses. */
export interface PrometheusRegistry {
  /** Adds a metric to the registry. */
  // biome-ignore lint/suspicious/noExplicitAny: prom-client's type names its own metric classes.
  registerMetric(metric: any): void
  /** Removes a metric from the registry. */
  removeSingleMetric(name: string): void
}

/**
 * Adds the metrics of a gate to a prom-client registry, so that your own `/metrics` includes them. Values are read when the
 * registry is scraped.
 *
 * @param gate a gate that was created with `metrics: true`
 * @param registry `register` of prom-client, or a `Registry` of your own
 * @returns a function that removes the metrics from the registry
 * @throws FluxGateError `FLUXGATE_CONFIG_INVALID` if the gate was created without `metrics: true`
 * @example
 * import { register } from 'prom-client'
 * import { collectGateMetrics } from 'fluxgate-js/prometheus'
 *
 * collectGateMetrics(gate, register)
 */
export function collectGateMetrics(gate: FluxGate, registry: PrometheusRegistry): () => void {
  const names = gate.metricNames()
  /** All metrics of one scrape share one reading: prom-client asks for them in the same turn. */
  let reading: ReturnType<FluxGate['collectMetrics']> | undefined
  const read = (): ReturnType<FluxGate['collectMetrics']> => {
    reading ??= gate.collectMetrics().finally(() => {
      reading = undefined
    })
    return reading
  }
  for (const name of names)
    registry.registerMetric({
      name,
      type: metricFamilies[name as MetricName].type,
      async get() {
        const {
          type,
          help,
          samples = [],
        } = (await read()).find((one) => one.name === name) ?? { type: this.type, help: '' }
        const values = samples.map((sample) => ({
          // Without a name, prom-client takes that of the metric, and adds the suffix of counters in the OpenMetrics format.
          ...(type === 'histogram' && { metricName: sample.name }),
          labels: sample.labels,
          value: sample.value,
          ...(sample.exemplar && { exemplar: asExemplar(sample.exemplar) }),
        }))
        // A registry in the OpenMetrics format has removed the suffix of counters from the name of this object.
        return { name: this.name, help, type, values, aggregator: 'sum' }
      },
      /** The counters belong to the gate. */
      reset() {},
    })
  return () => {
    for (const name of names) registry.removeSingleMetric(name)
  }
}

/** The exemplar in the form of prom-client, whose timestamps are seconds. */
const asExemplar = ({ traceId, spanId, value, at }: Exemplar) => ({
  labelSet: { trace_id: traceId, span_id: spanId },
  value,
  timestamp: at / 1_000,
})
