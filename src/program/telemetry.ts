import type { Config } from '../config/config.js'
import { redisAddress } from '../config/store.js'
import { systemClock } from '../core/clock.js'
import { messageOf } from '../core/errors.js'
import { openTelemetryApi } from '../core/tracing/open-telemetry.js'
import type { FluxGate } from '../gate/flux-gate.js'
import type { GivenObserver } from '../gate/reporting/open-observer.js'
import { connectRedis } from '../redis/client/connect-redis.js'
import { type CandidateReport, withShownKeys } from '../telemetry/candidates/report.js'
import { SharedReports } from '../telemetry/candidates/shared-reports.js'
import { GateMetrics } from '../telemetry/gate-metrics.js'
import { showKey } from '../telemetry/key-digest.js'
import type { Logger } from '../telemetry/logger.js'
import { type CollectedMetric, collectMetrics } from '../telemetry/metrics.js'
import { activeTrace } from '../telemetry/open-telemetry/traced-observer.js'
import type { SeriesQuery } from '../telemetry/series/decision-series.js'
import { Outages } from '../telemetry/series/outages.js'
import type { SeriesPart } from '../telemetry/series/report.js'
import { LocalStatistics } from '../telemetry/statistics/local-statistics.js'
import { SharedStatistics } from '../telemetry/statistics/shared-statistics.js'
import type { DecisionSample, Statistics } from '../telemetry/statistics/statistics.js'

export interface Telemetry {
  /** The observer of the gate: counts every decision and samples some for the statistics. */
  readonly observer: Required<GivenObserver>
  /** Statistics of this process or, with a Redis store, of all processes that share it. */
  readonly statistics: Statistics
  /** Registers a listener for sampled decisions of this process. */
  readonly onSample: (listener: (sample: DecisionSample) => void) => () => void
  /** Counts the reloads of a gate, and logs failures and recoveries of its store. */
  follow(gate: FluxGate): void
  /** The decisions of this process over time, for one series. */
  series(query: SeriesQuery): Promise<SeriesPart>
  /** The comparison of a candidate in this process, with keys as they may be shown. */
  candidateReport(ruleSetId: string): Promise<CandidateReport | undefined>
  /** With a Redis store: the comparison by all processes that share it. */
  readonly sharedReport?: (ruleSetId: string) => Promise<CandidateReport | undefined>
  /** The metrics of the followed gate. */
  metrics(): Promise<readonly CollectedMetric[]>
  close(): Promise<void>
}

export function createTelemetry({ server: { revealKeys }, store }: Config, log: Logger): Telemetry {
  const api = openTelemetryApi()
  const metrics = new GateMetrics(systemClock, api && activeTrace(api))
  const { recorder } = metrics
  const local = new LocalStatistics({ recorder, clock: systemClock, showKey: showKey(revealKeys) })
  const shared =
    store.type === 'redis'
      ? new SharedStatistics({
          connection: connectRedis(redisAddress(store), undefined),
          prefix: store.prefix,
          recorder,
          revealKeys,
          local,
          onFailure: (error) =>
            log.warn('shared statistics unavailable, showing this process only', { error: messageOf(error) }),
        })
      : undefined
  const collect = async () => collectMetrics(await metrics.source())
  const outages = new Outages(systemClock)
  let followed: FluxGate | undefined
  const show = showKey(revealKeys)
  const ownReport = (ruleSetId: string) => withShownKeys(followed?.candidates.report(ruleSetId), show)
  const sharedReports =
    store.type === 'redis'
      ? new SharedReports({
          connect: () => connectRedis(redisAddress(store), undefined),
          prefix: store.prefix,
          own: () => (followed?.candidates.ids() ?? []).flatMap((id) => ownReport(id) ?? []),
        })
      : undefined
  return {
    observer: { observer: recorder, collectMetrics: collect },
    statistics: shared ?? local,
    onSample: (listener) => recorder.onSample(listener),
    follow(gate) {
      followed = gate
      metrics.follow(gate)
      gate.on('reload', ({ error }) => {
        if (error === null) outages.end('RULES')
        else outages.start('RULES', error.message)
      })
      gate.on('degraded', ({ error }) => {
        log.error('bucket store failed', { error: messageOf(error) })
        outages.start('STORE', messageOf(error))
      })
      gate.on('recovered', () => {
        log.info('bucket store recovered')
        outages.end('STORE')
      })
    },
    async series(query) {
      const { series } = recorder
      return { query, ...series.read(query), outages: outages.read(query.since), series: series.names() }
    },
    candidateReport: async (ruleSetId) => ownReport(ruleSetId),
    ...(sharedReports !== undefined && { sharedReport: (ruleSetId: string) => sharedReports.read(ruleSetId) }),
    metrics: collect,
    async close() {
      metrics.close()
      await shared?.close()
      await sharedReports?.close()
    },
  }
}
