import type { RuleSet } from '../core/rule.js'
import type { Snapshot } from '../core/snapshot.js'

/** How often the buckets of a rule were started afresh. A rule is reset by counting up, not by searching its buckets. */
export class BucketGenerations {
  readonly #counts = new Map<string, number>()

  of(ruleSetId: string, ruleId: string): number {
    return this.#counts.get(nameOf(ruleSetId, ruleId)) ?? 0
  }

  startAfresh(ruleSetId: string, ruleId: string): void {
    this.#counts.set(nameOf(ruleSetId, ruleId), this.of(ruleSetId, ruleId) + 1)
  }

  /** A rule that is gone and comes back is a new one. */
  forgetRemoved(before: Snapshot, after: readonly RuleSet[]): void {
    const kept = new Set(after.flatMap(({ id, rules }) => rules.map((rule) => nameOf(id, rule.id))))
    for (const [ruleSetId, { rules }] of before.ruleSets)
      for (const ruleId of rules.keys()) if (!kept.has(nameOf(ruleSetId, ruleId))) this.startAfresh(ruleSetId, ruleId)
  }
}

const nameOf = (ruleSetId: string, ruleId: string): string => JSON.stringify([ruleSetId, ruleId])
