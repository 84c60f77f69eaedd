import { systemClock } from '../core/clock.js'
import { messageOf } from '../core/errors.js'
import { DecisionRecorder } from '../telemetry/decision-recorder.js'
import { showKey } from '../telemetry/key-digest.js'
import { LocalStatistics } from '../telemetry/local-statistics.js'
import type { Logger } from '../telemetry/logger.js'
import { renderMetrics } from '../telemetry/metrics.js'
import type { Statistics } from '../telemetry/statistics.js'
import type { FluxGate } from './gate.js'

export interface Telemetry {
  /** To be given to the gate that is watched. */
  readonly recorder: DecisionRecorder
  readonly statistics: Statistics
  /** Counts the gate's reloads, and tells the log when its store fails and answers again. */
  follow(gate: FluxGate): void
  /** Prometheus text; of a gate that was followed. */
  metrics(): Promise<string>
  close(): void
}

export function openTelemetry(options: { readonly revealKeys: boolean; readonly log: Logger }): Telemetry {
  const { revealKeys, log } = options
  const recorder = new DecisionRecorder(systemClock)
  const statistics = new LocalStatistics({ recorder, clock: systemClock, showKey: showKey(revealKeys) })
  const reloads = { changed: 0, unchanged: 0, failed: 0 }
  const timer = setInterval(() => recorder.secondPassed(), 1_000).unref()
  let followed: FluxGate | undefined
  return {
    recorder,
    statistics,
    follow(gate) {
      followed = gate
      gate.on('reload', ({ changed, error }) => {
        reloads[error !== null ? 'failed' : changed ? 'changed' : 'unchanged']++
      })
      gate.on('degraded', ({ error }) => log.error('the bucket store fails', { error: messageOf(error) }))
      gate.on('recovered', () => log.info('the bucket store answers again'))
    },
    async metrics() {
      const health = await followed?.health()
      const { counters, durations, storeErrors } = recorder
      return renderMetrics({
        counters,
        durations,
        storeErrors,
        reloads,
        breaker: health?.store.breaker ?? 'CLOSED',
        ruleCounts: (followed?.ruleSets ?? []).map(({ id, rules }) => ({ ruleSetId: id, count: rules.length })),
        waiting: health?.waiting ?? 0,
        leasePermits: health?.store.heldPermits ?? 0,
      })
    },
    close: () => clearInterval(timer),
  }
}
