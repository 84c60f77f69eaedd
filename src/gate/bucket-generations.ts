import type { Snapshot } from '../core/decision/snapshot.js'
import type { RuleSet } from '../core/rule.js'
import type { Steps } from '../core/scheduling/steps.js'

/** How often the buckets of a rule were started afresh. A rule is reset by counting up, not by searching its buckets. */
export class BucketGenerations {
  readonly #counts = new Map<string, number>()

  of(ruleSetId: string, ruleId: string): number {
    return this.#counts.get(nameOf(ruleSetId, ruleId)) ?? 0
  }

  startAfresh(ruleSetId: string, ruleId: string): void {
    this.#counts.set(nameOf(ruleSetId, ruleId), this.of(ruleSetId, ruleId) + 1)
  }

  /**
   * A rule that is gone and comes back is a new one; so is one whose bands mean something else, if `resetChanged` says so,
   * even when they change back later.
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
