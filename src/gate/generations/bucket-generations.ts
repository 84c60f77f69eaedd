import { bandsDefinition, type Snapshot } from '../../core/decision/snapshot.js'
import { type Rule, type RuleSet, resetsOnChange } from '../../core/rule.js'
import { eachInSteps, manyPerStep, type Steps } from '../../core/scheduling/steps.js'

/** Bucket generations of rules in this process. Incrementing a generation resets all buckets of a rule without a search. */
export class BucketGenerations {
  /** By rule set and rule. */
  readonly #counts = new Map<string, Map<string, number>>()

  of(ruleSetId: string, ruleId: string): number {
    return this.#counts.get(ruleSetId)?.get(ruleId) ?? 0
  }

  reset(ruleSetId: string, ruleId: string): void {
    const counts = this.#counts.get(ruleSetId) ?? new Map<string, number>()
    this.#counts.set(ruleSetId, counts.set(ruleId, this.of(ruleSetId, ruleId) + 1))
  }

  /**
   * Increments the generation of every removed rule, and of rules whose bands changed if their `onRuleChange` is RESET;
   * `resetChanged` is its default. A rule that returns later, or whose bands change back, therefore starts with full buckets.
   */
  *compare(before: Snapshot, after: readonly RuleSet[], resetChanged: boolean): Steps<void> {
    for (const [ruleSetId, { rules }] of before.plans) {
      const present = new Map<string, Rule>()
      const set = after.find(({ id }) => id === ruleSetId)
      yield* eachInSteps(set?.rules ?? [], (rule) => present.set(rule.id, rule), manyPerStep)
      const compareRule = ({ rule }: { readonly rule: Rule }): void => {
        const now = present.get(rule.id)
        if (now === undefined || (resetsOnChange(now, resetChanged) && !hasSameBands(now, rule)))
          this.reset(ruleSetId, rule.id)
      }
      yield* eachInSteps(rules.values(), compareRule, manyPerStep)
    }
  }
}

const hasSameBands = (one: Rule, other: Rule): boolean =>
  one.bands === other.bands || bandsDefinition(one) === bandsDefinition(other)
