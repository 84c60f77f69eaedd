/**
 * The metrics of this process in OpenTelemetry, under the same names and labels as in Prometheus: `fluxgate.decisions` becomes
 * `fluxgate_decisions_total` when it is exported there.
 */
import type { MeterProvider, OpenTelemetryApi } from '../../core/tracing/open-telemetry.js'
import { durationBounds } from '../duration-histogram.js'
import { mergeMetrics } from '../merge-metrics.js'
import { type CollectedMetric, type MetricName, metricFamilies } from '../metrics.js'

type Collect = () => Promise<readonly CollectedMetric[]>

/** Metrics that OpenTelemetry reads, until `remove` is called. */
export interface ReportedSource {
  /** Adds a duration to the histogram. All other metrics are read when they are exported. */
  decided(durationMs: number): void
  /** Counters keep what the source has counted. Must be called before the source is closed. */
  remove(): Promise<void>
}

/** One per provider: two instruments with the same name would overwrite each other's values. */
const byProvider = new WeakMap<MeterProvider, ReportedMetrics>()

/** Reports the metrics of a gate, or those that limiters share. */
export function reportMetrics(api: OpenTelemetryApi, collect: Collect): ReportedSource {
  const provider = api.metrics.getMeterProvider()
  const reported = byProvider.get(provider) ?? new ReportedMetrics(provider)
  byProvider.set(provider, reported)
  return reported.add(collect)
}

/** The name of a metric without the suffixes that Prometheus adds. */
const instrumentName = (name: string): string =>
  name.replace(/^fluxgate_/, 'fluxgate.').replace(/_total$|_seconds$/, '')

class ReportedMetrics {
  readonly #sources = new Set<Collect>()
  /** The counts of removed sources. */
  #counted: CollectedMetric[] = []
  readonly #durations: { record(value: number): void }

  constructor(provider: MeterProvider) {
    const meter = provider.getMeter('fluxgate-js')
    this.#durations = meter.createHistogram(instrumentName('fluxgate_decision_duration_seconds'), {
      description: metricFamilies.fluxgate_decision_duration_seconds.help,
      unit: 's',
      advice: { explicitBucketBoundaries: [...durationBounds] },
    })
    const instruments = new Map<string, object>()
    for (const [name, { type, help: description }] of Object.entries(metricFamilies)) {
      if (type === 'counter')
        instruments.set(name, meter.createObservableCounter(instrumentName(name), { description }))
      if (type === 'gauge') instruments.set(name, meter.createObservableGauge(instrumentName(name), { description }))
    }
    meter.addBatchObservableCallback(
      async (result) => {
        for (const { name, samples } of await this.#collect()) {
          const instrument = instruments.get(name)
          if (instrument === undefined) continue
          for (const { labels, value } of samples) result.observe(instrument, value, labels)
        }
      },
      [...instruments.values()],
    )
  }

  add(collect: Collect): ReportedSource {
    this.#sources.add(collect)
    return {
      decided: (durationMs) => this.#durations.record(durationMs / 1_000),
      remove: async () => {
        if (!this.#sources.delete(collect)) return
        const counters = (await collect()).filter(({ name }) => metricFamilies[name as MetricName].type === 'counter')
        this.#counted = mergeMetrics([this.#counted, counters])
      },
    }
  }

  async #collect(): Promise<readonly CollectedMetric[]> {
    const current = await Promise.all([...this.#sources].map((collect) => collect()))
    return mergeMetrics([this.#counted, ...current])
  }
}
