import type { Decision } from '../core/decision.js'
import type { DecisionCounts, RuleCounts } from './statistics/statistics.js'

interface Row extends RuleCounts {
  allowed: number
  delayed: number
  denied: number
  shadowDenied: number
  /** Another rule of the same id, in another set. */
  next: Row | undefined
}

/** Rules are written by their owners, but over the years there may be any number of them. */
const mostRows = 5_000

/** What is counted under this name came after all the others had been seen. */
export const otherRules = 'other'

/**
 * Exact counts of decisions by the rule that decided; each costs one lookup and an increment. Rule sets that do not exist
 * share one row without a name, because clients choose what they ask for.
 */
export class RuleCounters {
  readonly #byRule = new Map<string | null, Row>()
  readonly #rows: Row[] = []
  readonly #most: number
  /** Most decisions are about the same rule as the one before, and to compare is cheaper than to look up. */
  #last: Row | undefined
  /** Decisions made without the shared store. */
  degraded = 0

  constructor(most: number = mostRows) {
    this.#most = most
  }

  add(decision: Decision): void {
    let row = this.#last
    if (row === undefined || row.ruleId !== decision.ruleId || row.ruleSetId !== decision.ruleSetId) {
      row = this.#row(decision.reason === 'NO_RULE_SET' ? null : decision.ruleSetId, decision.ruleId)
      this.#last = row
    }
    if (!decision.allowed) row.denied++
    else if (decision.delayMs > 0) row.delayed++
    else row.allowed++
    if (decision.degraded) this.degraded++
    // A shadow stands beside a band that speaks, or nobody speaks.
    if (decision.bands.length > 1 || decision.ruleId === null) this.#addShadows(decision)
  }

  rows(): RuleCounts[] {
    return this.#rows.map(({ next: _, ...counts }) => counts)
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

  /** Once for each rule, however many of its bands refuse; the bands of a rule stand together. */
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
    const row: Row = { ruleSetId, ruleId, allowed: 0, delayed: 0, denied: 0, shadowDenied: 0, next }
    this.#byRule.set(ruleId, row)
    this.#rows.push(row)
    return row
  }
}
