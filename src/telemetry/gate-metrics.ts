import type { Clock } from '../core/clock.js'
import type { RequestContext } from '../core/request-context.js'
import type { SampledTrace } from '../core/tracing/trace-id.js'
import { BanCounts } from './ban-counts.js'
import { DecisionRecorder } from './decision-recorder.js'
import { type MetricsSource, metricFamilies } from './metrics.js'

/** The part of a gate that metrics read. */
export interface MeteredGate {
  readonly ruleSets: readonly {
    readonly id: string
    readonly rules: readonly { readonly id: string; readonly ban?: object }[]
  }[]
  readonly heldCount: number
  readonly reservedCount: number
  readonly warnings: { readonly counts: Readonly<Record<string, number | undefined>> }
  on(name: 'reload', listener: (event: { readonly changed: boolean; readonly error: unknown }) => void): () => void
  on(name: 'ban', listener: (event: { readonly ruleSetId: string; readonly ruleId: string }) => void): () => void
  health(): Promise<{
    readonly waiting: number
    readonly store: {
      readonly status: string
      readonly breaker: MetricsSource['breaker'] | null
      readonly heldPermits: number
    }
  }>
}

/** Counts the decisions, store failures and reloads of one gate. */
export class GateMetrics {
  /** The observer to pass to the gate. */
  readonly recorder: DecisionRecorder
  readonly names: readonly string[] = Object.keys(metricFamilies)
  readonly #reloads = { changed: 0, unchanged: 0, failed: 0 }
  readonly #bans = new BanCounts()
  readonly #timer: NodeJS.Timeout
  #gate: MeteredGate | undefined

  /** `traceOf` returns the sampled trace of a decision; default the one that the request's headers name. */
  constructor(clock: Clock, traceOf?: (context: RequestContext) => SampledTrace | undefined) {
    this.recorder = new DecisionRecorder(clock, Math.random, traceOf)
    this.#timer = setInterval(() => this.recorder.secondPassed(), 1_000).unref()
  }

  follow(gate: MeteredGate): void {
    this.#gate = gate
    gate.on('reload', ({ changed, error }) => {
      this.#reloads[error !== null ? 'failed' : changed ? 'changed' : 'unchanged']++
    })
    gate.on('ban', ({ ruleSetId, ruleId }) => this.#bans.add(ruleSetId, ruleId))
  }

  /** Probes the store, at most once per second. */
  async source(): Promise<MetricsSource> {
    const gate = this.#gate
    const health = await gate?.health()
    const { counters, durations, storeErrors } = this.recorder
    const ruleSets = gate?.ruleSets ?? []
    for (const { id, rules } of ruleSets) for (const rule of rules) if (rule.ban) this.#bans.start(id, rule.id)
    return {
      counters,
      durations,
      storeErrors,
      reloads: this.#reloads,
      warnings: (gate?.warnings.counts ?? {}) as Readonly<Record<string, number>>,
      isStoreUp: health?.store.status !== 'DOWN',
      breaker: health?.store.breaker ?? 'CLOSED',
      ruleCounts: ruleSets.map(({ id, rules }) => ({ ruleSetId: id, count: rules.length })),
      waiting: health?.waiting ?? 0,
      leasePermits: health?.store.heldPermits ?? 0,
      holds: gate?.heldCount ?? 0,
      reservations: gate?.reservedCount ?? 0,
      bans: this.#bans.counted(),
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
