import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { outcomeOf } from '../core/tracing/decision-event.js'
import { type SampledTrace, sampledTraceOf } from '../core/tracing/trace-id.js'
import type { DecisionObserver } from './decision-observer.js'
import { DurationHistogram } from './duration-histogram.js'
import { type CountedRule, RuleCounters } from './rule-counters.js'
import { DecisionSeries } from './series/decision-series.js'
import {
  type DecisionCounts,
  type DecisionSample,
  keptSeconds,
  mostDecisionsFirst,
  type StatisticsSummary,
} from './statistics/statistics.js'

/** Up to this rate, every decision is sampled. Above it, a sample represents several decisions. */
const samplesPerSecond = 1_000

type StoreErrorKind = 'timeout' | 'error' | 'open' | 'unreachable' | 'misconfigured'

const kindByCode: Readonly<Record<string, StoreErrorKind>> = {
  FLUXGATE_STORE_TIMEOUT: 'timeout',
  FLUXGATE_STORE_OPEN: 'open',
  FLUXGATE_STORE_UNREACHABLE: 'unreachable',
  FLUXGATE_STORE_MISCONFIGURED: 'misconfigured',
}

/**
 * Counts every decision and passes a bounded number of samples to listeners. A decision that is not sampled costs a few
 * increments. The sampling rate follows from the previous second, and drops within a second with more traffic.
 */
export class DecisionRecorder implements DecisionObserver {
  readonly counters = new RuleCounters()
  readonly durations = new DurationHistogram()
  readonly series: DecisionSeries
  readonly storeErrors: Record<StoreErrorKind, number> = {
    timeout: 0,
    error: 0,
    open: 0,
    unreachable: 0,
    misconfigured: 0,
  }
  readonly #clock: Clock
  readonly #sinceAt: number
  readonly #listeners = new Set<(sample: DecisionSample) => void>()
  readonly #seconds: (DecisionCounts & { readonly at: number })[] = []
  #totals: DecisionCounts
  readonly #random: () => number
  readonly #traceOf: (context: RequestContext) => SampledTrace | undefined
  /** Average number of decisions per sample. */
  #stride = 1
  /** The number of decisions from the previous sample to the next, and how many of them are left. */
  #gap = 1
  #untilSample = 1
  #samples = 0
  #seen = 0
  /** How many decisions of the current gap are in the histogram. */
  #timed = 0

  constructor(
    clock: Clock,
    random: () => number = Math.random,
    traceOf: (context: RequestContext) => SampledTrace | undefined = ({ headers }) => sampledTraceOf(headers),
  ) {
    this.#clock = clock
    this.#random = random
    this.#traceOf = traceOf
    this.#sinceAt = Math.floor(clock.now())
    this.#totals = this.counters.totals()
    this.series = new DecisionSeries(clock, this.counters, this.durations)
  }

  get isTiming(): boolean {
    return this.#untilSample <= 1
  }

  decided(decision: Decision, context: RequestContext, durationMs: number): void {
    const counted = this.counters.add(decision)
    this.#untilSample--
    if (durationMs >= 0) {
      this.#time(durationMs)
      counted.durations.observe(durationMs, 1)
    }
    if (this.#untilSample > 0) return
    this.#exemplify(decision, context, durationMs, counted)
    this.#sample(decision, context)
  }

  storeFailed(error: unknown): void {
    const code = error instanceof FluxGateError ? error.code : ''
    this.storeErrors[kindByCode[code] ?? 'error']++
  }

  /** Adds a listener, which must not throw. Returns a function that removes it. */
  onSample(listener: (sample: DecisionSample) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Must be called about once per second. */
  secondPassed(): void {
    this.#stride = Math.max(1, Math.ceil(this.#seen / samplesPerSecond))
    this.#samples = 0
    this.#seen = 0
    // After a busy second, the next decision is sampled at once instead of at the end of a long gap.
    if (this.#stride === 1 && this.#untilSample > 1) {
      this.#gap -= this.#untilSample - 1
      this.#untilSample = 1
    }
    const now = this.counters.totals()
    const before = this.#totals
    this.#totals = now
    this.#seconds.push({
      at: Math.round(this.#clock.now()),
      allowed: now.allowed - before.allowed,
      delayed: now.delayed - before.delayed,
      denied: now.denied - before.denied,
      shadowDenied: now.shadowDenied - before.shadowDenied,
    })
    if (this.#seconds.length > keptSeconds) this.#seconds.shift()
    this.series.secondPassed()
  }

  summary(): StatisticsSummary {
    return {
      sinceAt: this.#sinceAt,
      totals: this.counters.totals(),
      rules: this.counters.rows().sort(mostDecisionsFirst),
      seconds: [...this.#seconds],
    }
  }

  /** Decisions that were not timed count with the duration of the next one that is. */
  #time(durationMs: number): void {
    const passed = this.#gap - this.#untilSample
    this.durations.observe(durationMs, passed - this.#timed)
    this.#timed = passed
  }

  /** Only for samples, so that parsing headers costs nothing under high load. */
  #exemplify(decision: Decision, context: RequestContext, durationMs: number, counted: CountedRule): void {
    const trace = this.#traceOf(context)
    if (trace === undefined) return
    const at = Math.round(this.#clock.now())
    counted.exemplars[outcomeOf(decision)] = { ...trace, value: 1, at }
    if (durationMs >= 0) this.durations.exemplify(durationMs, trace, at)
  }

  #sample(decision: Decision, context: RequestContext): void {
    const weight = this.#gap
    this.#seen += weight
    if (++this.#samples % samplesPerSecond === 0) this.#stride *= 2
    // A random length, so that periodic traffic does not bias the sample.
    this.#gap = this.#stride === 1 ? 1 : 1 + Math.floor(this.#random() * (2 * this.#stride - 1))
    this.#untilSample = this.#gap
    this.#timed = 0
    if (this.#listeners.size === 0) return
    const sample = { decision, context, at: Math.round(this.#clock.now()), weight }
    for (const listener of this.#listeners) listener(sample)
  }
}
