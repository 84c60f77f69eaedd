import { createHash } from 'node:crypto'
import { algorithmTraits } from '../../core/algorithm-traits.js'
import type { BucketStore } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import { compileSnapshot, type Plan, type SnapshotOptions } from '../../core/decision/snapshot.js'
import type { Rule, RuleSet } from '../../core/rule.js'
import { CandidateComparison, type CandidateReport } from '../../telemetry/candidates/report.js'

/** A compiled candidate and its comparison with the current rules. */
export interface Candidate {
  readonly ruleSet: RuleSet
  readonly digest: string
  readonly plan: Plan
  readonly comparison: CandidateComparison
  /** The current rules with the algorithm CONCURRENCY, which candidates do not evaluate. */
  readonly heldRules: ReadonlySet<string>
}

/** The active candidates, by the id of their rule set. */
export class Candidates {
  readonly #clock: Clock
  readonly #store: Pick<BucketStore, 'retire'>
  readonly #options: () => SnapshotOptions
  #byId: ReadonlyMap<string, Candidate> = new Map()

  constructor(clock: Clock, store: Pick<BucketStore, 'retire'>, options: () => SnapshotOptions) {
    this.#clock = clock
    this.#store = store
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0
  }

  /** The ids of the rule sets that have a candidate. */
  ids(): readonly string[] {
    return [...this.#byId.keys()]
  }

  of(ruleSetId: string | undefined): Candidate | undefined {
    return ruleSetId === undefined ? undefined : this.#byId.get(ruleSetId)
  }

  report(ruleSetId: string): CandidateReport | undefined {
    return this.#byId.get(ruleSetId)?.comparison.report()
  }

  /** Takes the candidates among the rule sets. An unchanged candidate keeps its comparison. */
  replace(ruleSets: readonly RuleSet[]): void {
    const next = new Map<string, Candidate>()
    for (const ruleSet of ruleSets) {
      const { candidateOf } = ruleSet
      const current = ruleSets.find(({ id }) => id === candidateOf)
      if (candidateOf === undefined || current === undefined) continue
      const known = this.#byId.get(candidateOf)
      const digest = digestOf(ruleSet)
      const candidate = known?.digest === digest ? known : this.#compile(ruleSet, candidateOf, digest)
      next.set(candidateOf, { ...candidate, heldRules: new Set(current.rules.filter(takesHolds).map(({ id }) => id)) })
    }
    const before = this.#byId
    this.#byId = next
    for (const [id, { plan }] of before) this.#retire(plan, next.get(id)?.plan)
  }

  /** Releases the buckets of rules that the candidate no longer has. */
  #retire({ rules }: Plan, next: Plan | undefined): void {
    for (const { rule, group } of rules.values())
      if (next?.rules.get(rule.id)?.group.generation !== group.generation) this.#store.retire?.(group)
  }

  /**
   * Compiles with the id of the current rule set: overrides and `enforcePercent` then apply as they would after a promotion.
   * The generation keeps the buckets apart.
   */
  #compile(ruleSet: RuleSet, ruleSetId: string, digest: string): Omit<Candidate, 'heldRules'> {
    const options = { ...this.#options(), isCandidate: true, defaultRuleSetId: ruleSetId, resets: () => 0 }
    const plan = compileSnapshot([{ ...ruleSet, id: ruleSetId }], options).defaultPlan as Plan
    return { ruleSet, digest, plan, comparison: new CandidateComparison(ruleSetId, digest, this.#clock.now()) }
  }
}

const takesHolds = ({ bands }: Rule): boolean => bands.some(({ algorithm }) => algorithmTraits[algorithm].takesHolds)

const digestOf = (ruleSet: RuleSet): string =>
  createHash('sha256').update(JSON.stringify(ruleSet)).digest('base64url').slice(0, 16)

/** Rule sets that decide requests. */
export const withoutCandidates = (ruleSets: readonly RuleSet[]): readonly RuleSet[] =>
  ruleSets.some(({ candidateOf }) => candidateOf !== undefined)
    ? ruleSets.filter(({ candidateOf }) => candidateOf === undefined)
    : ruleSets
