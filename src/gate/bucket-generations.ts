import type { Snapshot } from '../core/decision/snapshot.js'
import type { RuleSet } from '../core/rule.js'
import type { Steps } from '../core/scheduling/steps.js'

/** Bucket generations of rules in this process. Incrementing a generation resets all buckets of a rule without a search. */
export class BucketGenerations {
  readonly #counts = new Map<string, number>()

  of(ruleSetId: string, ruleId: string): number {
    return this.#counts.get(nameOf(ruleSetId, ruleId)) ?? 0
  }

  startAfresh(ruleSetId: string, ruleId: string): void {
    this.#counts.set(nameOf(ruleSetId, ruleId), this.of(ruleSetId, ruleId) + 1)
  }

  /**
   * Increments the generation of every removed rule, and of rules whose bands changed if `resetChanged` is true. A rule that
   * returns later, or whose bands change back, therefore starts with full buckets.
   */
  *compare(before: Snapshot, after: readonly RuleSet[], resetChanged: boolean): Steps<void> {
    const bandsAfter = new Map<string, string>()
    for (const { id, rules } of after)
      for (const rule of rules) {
        bandsAfter.set(nameOf(id, rule.id), JSON.stringify(rule.bands))
        yield
      }
    for (const [ruleSetId, { rules }] of before.plans)
      for (const [ruleId, { rule }] of rules) {
        yield
        const bands = bandsAfter.get(nameOf(ruleSetId, ruleId))
        if (bands === undefined || (resetChanged && bands !== JSON.stringify(rule.bands)))
          this.startAfresh(ruleSetId, ruleId)
      }
  }
}

const nameOf = (ruleSetId: string, ruleId: string): string => JSON.stringify([ruleSetId, ruleId])
