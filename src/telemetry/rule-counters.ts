import type { Decision } from '../core/decision.js'
import type { Outcome } from '../core/tracing/decision-event.js'
import { DurationHistogram } from './duration-histogram.js'
import type { Exemplar } from './exemplar.js'
import type { DecisionCounts, RuleCounts } from './statistics/statistics.js'

/** The counts of one rule. The object lives as long as the counters. */
export interface CountedRule extends RuleCounts {
  /** The decisions made without the shared store. */
  readonly degraded: number
  /** The durations of the timed decisions. */
  readonly durations: DurationHistogram
  /** The latest decisions with a sampled trace, by outcome. */
  readonly exemplars: Partial<Record<Outcome, Exemplar>>
}

interface Row extends CountedRule {
  allowed: number
  delayed: number
  denied: number
  shadowDenied: number
  degraded: number
  /** The next row with the same rule id in another rule set. */
  next: Row | undefined
}

/** Bounds the memory of a long-running process whose rules change often. */
const maxRows = 5_000

/** The rule id under which all rules beyond the limit are counted. */
export const otherRules = 'other'

/**
 * Exact counts of decisions by deciding rule, at the cost of one lookup and one increment. Unknown rule sets share one row
 * without a name, because clients can request any name.
 */
export class RuleCounters {
  readonly #byRule = new Map<string | null, Row>()
  readonly #rows: Row[] = []
  readonly #most: number
  /** Cache of the last row: consecutive decisions often have the same rule, and a comparison is cheaper than a lookup. */
  #last: Row | undefined
  /** The number of decisions made without the shared store. */
  degraded = 0

  constructor(most: number = maxRows) {
    this.#most = most
  }

  /** Returns the counts of the deciding rule. */
  add(decision: Decision): CountedRule {
    let row = this.#last
    if (row === undefined || row.ruleId !== decision.ruleId || row.ruleSetId !== decision.ruleSetId) {
      row = this.#row(decision.reason === 'NO_RULE_SET' ? null : decision.ruleSetId, decision.ruleId)
      this.#last = row
    }
    if (!decision.allowed) row.denied++
    else if (decision.delayMs > 0) row.delayed++
    else row.allowed++
    if (decision.degraded) {
      this.degraded++
      row.degraded++
    }
    // A decision with one band and a deciding rule has no shadow rejection.
    if (decision.bands.length > 1 || decision.ruleId === null) this.#addShadows(decision)
    return row
  }

  rows(): RuleCounts[] {
    return this.#rows.map(({ ruleSetId, ruleId, allowed, delayed, denied, shadowDenied }) => ({
      ruleSetId,
      ruleId,
      allowed,
      delayed,
      denied,
      shadowDenied,
    }))
  }

  /** The current counts, not copied. */
  counted(): readonly CountedRule[] {
    return this.#rows
  }

  totals(): DecisionCounts & { readonly degraded: number } {
    const sum = { allowed: 0, delayed: 0, denied: 0, shadowDenied: 0 }
    for (const row of this.#rows) {
      sum.allowed += row.allowed
      sum.delayed += row.delayed
      sum.denied += row.denied
      sum.shadowDenied += row.shadowDenied
    }
    return { ...sum, degraded: this.degraded }
  }

  /** Counts each shadow rule once, even if several of its bands reject. The bands of a rule are adjacent. */
  #addShadows({ ruleSetId, bands }: Decision): void {
    let counted: string | undefined
    for (const { shadow, allowed, ruleId } of bands) {
      if (!shadow || allowed || ruleId === counted) continue
      counted = ruleId
      this.#row(ruleSetId, ruleId).shadowDenied++
    }
  }

  #row(ruleSetId: string | null, ruleId: string | null): Row {
    let row = this.#byRule.get(ruleId)
    while (row !== undefined && row.ruleSetId !== ruleSetId) row = row.next
    return row ?? this.#newRow(ruleSetId, ruleId)
  }

  #newRow(ruleSetId: string | null, ruleId: string | null): Row {
    if (this.#rows.length >= this.#most && ruleSetId !== otherRules) return this.#row(otherRules, otherRules)
    const next = this.#byRule.get(ruleId)
    const durations = new DurationHistogram()
    const counts = { allowed: 0, delayed: 0, denied: 0, shadowDenied: 0, degraded: 0 }
    const row: Row = { ruleSetId, ruleId, ...counts, durations, exemplars: {}, next }
    this.#byRule.set(ruleId, row)
    this.#rows.push(row)
    return row
  }
}
