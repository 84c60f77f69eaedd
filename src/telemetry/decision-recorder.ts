import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import type { DecisionObserver } from './decision-observer.js'
import { DurationHistogram } from './duration-histogram.js'
import { RuleCounters } from './rule-counters.js'
import {
  type DecisionCounts,
  type DecisionSample,
  keptSeconds,
  mostDecisionsFirst,
  type StatisticsSummary,
} from './statistics/statistics.js'

/** Up to so many decisions a second are all told; of more, each stands for several. */
const samplesPerSecond = 1_000

type StoreErrorKind = 'timeout' | 'error' | 'open' | 'unreachable' | 'misconfigured'

const kindByCode: Readonly<Record<string, StoreErrorKind>> = {
  FLUXGATE_STORE_TIMEOUT: 'timeout',
  FLUXGATE_STORE_OPEN: 'open',
  FLUXGATE_STORE_UNREACHABLE: 'unreachable',
  FLUXGATE_STORE_MISCONFIGURED: 'misconfigured',
}

/**
 * Counts every decision, and tells listeners about as many as they can take. Between two samples a decision costs a few
 * increments: how far apart they are follows from the second before, and grows within a second that is busier.
 */
export class DecisionRecorder implements DecisionObserver {
  readonly counters = new RuleCounters()
  readonly durations = new DurationHistogram()
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
  /** Each sample stands for so many decisions, on the average. */
  #stride = 1
  /** The one under way, and what is left of it. */
  #gap = 1
  #untilSample = 1
  #samples = 0
  #seen = 0
  /** Of the gap under way, how many decisions are in the histogram. */
  #timed = 0

  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = clock
    this.#random = random
    this.#sinceAt = Math.floor(clock.now())
    this.#totals = this.counters.totals()
  }

  get isTiming(): boolean {
    return this.#untilSample <= 1
  }

  decided(decision: Decision, context: RequestContext, durationMs: number): void {
    this.counters.add(decision)
    this.#untilSample--
    if (durationMs >= 0) this.#time(durationMs)
    if (this.#untilSample <= 0) this.#sample(decision, context)
  }

  storeFailed(error: unknown): void {
    const code = error instanceof FluxGateError ? error.code : ''
    this.storeErrors[kindByCode[code] ?? 'error']++
  }

  /** The result stops it. A listener that throws is a mistake of this program. */
  onSample(listener: (sample: DecisionSample) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** To be called about once a second. */
  secondPassed(): void {
    this.#stride = Math.max(1, Math.ceil(this.#seen / samplesPerSecond))
    this.#samples = 0
    this.#seen = 0
    // Who has been waiting for a busier second to go on is told at once.
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
  }

  summary(): StatisticsSummary {
    return {
      sinceAt: this.#sinceAt,
      totals: this.counters.totals(),
      rules: this.counters.rows().sort(mostDecisionsFirst),
      seconds: [...this.#seconds],
    }
  }

  /** Those that were not timed are taken to have lasted as long as the next that is. */
  #time(durationMs: number): void {
    const passed = this.#gap - this.#untilSample
    this.durations.observe(durationMs, passed - this.#timed)
    this.#timed = passed
  }

  #sample(decision: Decision, context: RequestContext): void {
    const weight = this.#gap
    this.#seen += weight
    if (++this.#samples % samplesPerSecond === 0) this.#stride *= 2
    // Of uneven length, so that traffic with a rhythm of its own is seen as it is.
    this.#gap = this.#stride === 1 ? 1 : 1 + Math.floor(this.#random() * (2 * this.#stride - 1))
    this.#untilSample = this.#gap
    this.#timed = 0
    if (this.#listeners.size === 0) return
    const sample = { decision, context, at: Math.round(this.#clock.now()), weight }
    for (const listener of this.#listeners) listener(sample)
  }
}
