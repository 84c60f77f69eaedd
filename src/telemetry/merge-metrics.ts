import type { CollectedMetric, MetricName } from './metrics.js'

type Merge = (one: number, other: number) => number

/** Metrics that are not summed: states that all processes share, and states where the worst counts. */
const merges: Readonly<Record<string, Merge>> = {
  fluxgate_breaker_state: Math.max,
  fluxgate_rules: Math.max,
  fluxgate_store_up: Math.min,
} satisfies Partial<Record<MetricName, Merge>>

const sum: Merge = (one, other) => one + other

type MetricSample = CollectedMetric['samples'][number]

/** Merges the metrics of several processes. The latest exemplar is kept. */
export function mergeMetrics(processes: readonly (readonly CollectedMetric[])[]): CollectedMetric[] {
  const families = new Map<string, CollectedMetric>()
  const series = new Map<string, Map<string, MetricSample>>()
  for (const metric of processes.flat()) {
    const { name } = metric
    families.set(name, metric)
    const samples = series.get(name) ?? new Map<string, MetricSample>()
    series.set(name, samples)
    for (const sample of metric.samples) {
      const id = JSON.stringify([sample.name, ...Object.values(sample.labels)])
      const before = samples.get(id)
      samples.set(id, before === undefined ? sample : merged(merges[name] ?? sum, before, sample))
    }
  }
  return [...families.values()].map((family) => ({
    ...family,
    samples: [...(series.get(family.name)?.values() ?? [])],
  }))
}

function merged(merge: Merge, one: MetricSample, other: MetricSample): MetricSample {
  const value = merge(one.value, other.value)
  const isLater = (one.exemplar?.at ?? 0) < (other.exemplar?.at ?? 0)
  return { ...(isLater ? other : one), value }
}
