import type { FluxGate } from './gate/flux-gate.js'

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
      async get() {
        const metric = (await read()).find((one) => one.name === name)
        const values = (metric?.samples ?? []).map(({ name: metricName, labels, value }) => ({
          metricName,
          labels,
          value,
        }))
        return { name, help: metric?.help ?? '', type: metric?.type ?? 'gauge', values, aggregator: 'sum' }
      },
      /** The counters belong to the gate. */
      reset() {},
    })
  return () => {
    for (const name of names) registry.removeSingleMetric(name)
  }
}
