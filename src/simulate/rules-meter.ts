import { ticksPerMs } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { Meter } from './meter.js'
import { finish, type Run, runOf, type SimulationOptions } from './simulate-bands.js'

export interface RuleRun {
  readonly ruleId: string
  /** The number of requests that the rule applied to. */
  readonly applied: number
  /** The number of these requests that were allowed. */
  readonly allowed: number
  /** The number of these requests that this rule rejected. Another rule may have rejected them too. */
  readonly rejected: number
  /** The number of these rejections that happened during a ban. */
  readonly banned: number
  /** The number of rejections by a rule in SHADOW mode, which have no effect. */
  readonly shadowRejected: number
}

export interface RulesSimulation {
  readonly startAtMs: number
  readonly bucketMs: number
  /** The window of the peaks: one second, because rules have different windows. */
  readonly windowMs: number
  readonly total: Run
  readonly rules: readonly RuleRun[]
  /** The number of requests that no rule applied to. */
  readonly withoutRule: number
}

type Tally = { -readonly [field in keyof RuleRun]: RuleRun[field] }

const peakWindow = 1_000 * ticksPerMs

/** Counts the decisions of one rule set, by rule. */
export class RulesMeter {
  readonly #options: SimulationOptions
  readonly #tallies = new Map<string, Tally>()
  #meter: Meter | undefined
  #last: number
  #withoutRule = 0

  constructor(options: SimulationOptions = {}) {
    this.#options = options
    this.#last = options.startAt ?? 0
  }

  /**
   * Records the decision about a request that arrived at the tick `at`, in order of the decisions. `waited` is the time from its
   * arrival to the decision, and `duration` how long it is in progress after its release, in ticks.
   */
  record(at: number, decision: Decision, waited = 0, duration?: number): void {
    this.#meter ??= new Meter(this.#options.startAt ?? at, peakWindow)
    this.#last = Math.max(this.#last, at)
    if (decision.allowed) this.#meter.allowed(at, waited + decision.delayMs * ticksPerMs, duration)
    else this.#meter.rejected(at)
    if (decision.ruleId === null && decision.bands.length === 0) this.#withoutRule += 1
    else count(this.#tallies, decision)
  }

  result(): RulesSimulation {
    const meter = this.#meter ?? new Meter(this.#last, peakWindow)
    const bucketMs = finish([meter], Math.max(this.#last, (this.#options.until ?? 0) - 1))
    return {
      startAtMs: meter.series.startAt / ticksPerMs,
      bucketMs,
      windowMs: peakWindow / ticksPerMs,
      total: runOf(meter),
      rules: [...this.#tallies.values()].sort((a, b) => b.rejected - a.rejected || b.applied - a.applied),
      withoutRule: this.#withoutRule,
    }
  }
}

function count(tallies: Map<string, Tally>, decision: Decision): void {
  const { allowed, bands, reason } = decision
  for (let i = 0; i < bands.length; i++) {
    const ruleId = bands[i]?.ruleId as string
    if (bands.findIndex((band) => band.ruleId === ruleId) < i) continue
    const rejecting = bands.find((band) => band.ruleId === ruleId && !band.allowed)
    const tally = tallyOf(tallies, ruleId)
    tally.applied += 1
    if (allowed) tally.allowed += 1
    if (rejecting?.shadow) tally.shadowRejected += 1
    else if (rejecting) tally.rejected += 1
    if (reason === 'BANNED' && decision.ruleId === ruleId) tally.banned += 1
  }
  // A decision without a bucket has no bands, only the deciding rule.
  if (bands.length > 0 || decision.ruleId === null) return
  const tally = tallyOf(tallies, decision.ruleId)
  tally.applied += 1
  if (allowed) tally.allowed += 1
  else tally.rejected += 1
}

function tallyOf(tallies: Map<string, Tally>, ruleId: string): Tally {
  const known = tallies.get(ruleId)
  if (known) return known
  const fresh = { ruleId, applied: 0, allowed: 0, rejected: 0, banned: 0, shadowRejected: 0 }
  tallies.set(ruleId, fresh)
  return fresh
}
