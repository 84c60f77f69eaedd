import type { BucketGroup, BucketStore, SharedGenerations } from '../core/bucket-store.js'
import type { BucketReset } from '../core/contracts/bucket-reset-handler.js'
import {
  type CompiledRule,
  compileSnapshot,
  type Snapshot,
  type SnapshotOptions,
  snapshotSteps,
} from '../core/decision/snapshot.js'
import { FluxGateError } from '../core/errors.js'
import type { Rule, RuleSet } from '../core/rule.js'
import { eachInSteps, inSlices, manyPerStep, type Steps } from '../core/scheduling/steps.js'
import { defaultMaxWaitMs } from '../core/waiting/waiting-room.js'
import { BucketGenerations } from './generations/bucket-generations.js'
import type { FluxGateOptions } from './options.js'

/** The compiled current rules, and the current generations of their buckets. */
export class CurrentRules {
  readonly #options: FluxGateOptions
  readonly #store: Pick<BucketStore, 'retire'>
  /** Generations shared by all processes, if the store supports them. */
  readonly #shared: SharedGenerations | undefined
  readonly #own = new BucketGenerations()
  #ruleSets: readonly RuleSet[]
  /** Used by the next decision. */
  snapshot: Snapshot
  /** Large rule sets are compiled in slices: the running compilation, and the one queued behind it because of a reset. */
  #running: Promise<void> | undefined
  #queued: Promise<void> | undefined

  constructor(
    options: FluxGateOptions,
    ruleSets: readonly RuleSet[],
    store: Pick<BucketStore, 'retire' | 'generations'>,
  ) {
    this.#options = options
    this.#store = store
    this.#shared = store.generations
    this.#ruleSets = ruleSets
    this.snapshot = compileSnapshot(ruleSets, this.snapshotOptions())
  }

  /** The rule sets of the current snapshot. */
  get ruleSets(): readonly RuleSet[] {
    return this.#ruleSets
  }

  ruleOf(ruleSetId: string, ruleId: string): Rule | undefined {
    return this.compiledRule(ruleSetId, ruleId)?.rule
  }

  /** The rule with its buckets. */
  readonly compiledRule = (ruleSetId: string, ruleId: string): CompiledRule | undefined =>
    this.snapshot.plans.get(ruleSetId)?.rules.get(ruleId)

  /** True if the group belongs to a current rule, not to a candidate. */
  has({ ruleSetId, ruleId }: BucketGroup): boolean {
    return this.compiledRule(ruleSetId, ruleId) !== undefined
  }

  /** One rule, or all rules of a rule set. Throws if no rule matches. */
  choose(ruleSetId: string, ruleId: string | undefined): readonly CompiledRule[] {
    const rules = this.snapshot.plans.get(ruleSetId)?.rules
    const chosen = [...(rules?.values() ?? [])].filter(({ rule }) => ruleId === undefined || rule.id === ruleId)
    if (chosen.length > 0) return chosen
    const message =
      ruleId === undefined
        ? `Rule set "${ruleSetId}" does not exist or has no rules.`
        : `Rule "${ruleId}" does not exist in rule set "${ruleSetId}".`
    throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
  }

  /** Activates new rules. Decisions in flight finish with the rules they started with. */
  replace(ruleSets: readonly RuleSet[]): void | Promise<void> {
    return this.#inTurn(() => this.#replaceSteps(ruleSets))
  }

  *#replaceSteps(ruleSets: readonly RuleSet[]): Steps<void> {
    const resetChanged = this.#options.reload?.resetBucketsOnReload ?? true
    if (this.#shared === undefined) yield* this.#own.compare(this.snapshot, ruleSets, resetChanged)
    yield* this.#compileSteps(ruleSets)
  }

  async resetRules(ruleSetId: string, ruleIds: readonly string[]): Promise<void> {
    if (this.#shared === undefined) for (const ruleId of ruleIds) this.#own.reset(ruleSetId, ruleId)
    else await this.#shared.resetRules(ruleSetId, ruleIds)
    await this.compileAgain()
  }

  /** Recompiles after a reset. Concurrent calls share one compilation, which reads all generations when it starts. */
  compileAgain(): void | Promise<void> {
    if (this.#running === undefined) return this.#inTurn(() => this.#compileSteps(this.#ruleSets))
    this.#queued ??= this.#running.then(() => {
      this.#queued = undefined
      return this.compileAgain()
    })
    return this.#queued
  }

  /** Runs one compilation at a time, because each compares its result with the previous snapshot. */
  #inTurn(work: () => Steps<void>): void | Promise<void> {
    const done = this.#running === undefined ? inSlices(work()) : this.#running.then(() => inSlices(work()))
    if (done === undefined) return
    const running: Promise<void> = done
      // The caller receives the error through `done`; queued work runs in any case.
      .catch(() => {})
      .then(() => {
        if (this.#running === running) this.#running = undefined
      })
    this.#running = running
    return done
  }

  /** Replaces the snapshot atomically, then retires the bucket groups that are no longer used. */
  *#compileSteps(ruleSets: readonly RuleSet[]): Steps<void> {
    const snapshot = yield* snapshotSteps(ruleSets, this.snapshotOptions())
    const before = this.snapshot
    this.snapshot = snapshot
    this.#ruleSets = ruleSets
    for (const [ruleSetId, { rules }] of before.plans) {
      const now = snapshot.plans.get(ruleSetId)?.rules
      const ruleIds: string[] = []
      const retire = ({ rule, group }: CompiledRule): void => {
        if (now?.get(rule.id)?.group.generation === group.generation) return
        this.#store.retire?.(group)
        ruleIds.push(rule.id)
      }
      yield* eachInSteps(rules.values(), retire, manyPerStep)
      if (ruleIds.length > 0) this.#notify({ ruleSetId, ruleIds })
    }
  }

  /** The options with which the current rules are compiled. */
  snapshotOptions(): SnapshotOptions {
    const { defaultRuleSetId, keyResolvers, ipv6Prefix, reload, waitForRefill } = this.#options
    return {
      defaultRuleSetId,
      resolvers: keyResolvers,
      ipv6Prefix,
      maxWaitMs: waitForRefill?.maxWaitMs ?? defaultMaxWaitMs,
      resetBucketsOnReload: reload?.resetBucketsOnReload ?? true,
      resets: (ruleSetId, ruleId) => (this.#shared ?? this.#own).of(ruleSetId, ruleId),
    }
  }

  #notify(reset: BucketReset): void {
    const handler = this.#options.bucketResetHandler
    if (handler !== undefined) queueMicrotask(() => handler.bucketsReset(reset))
  }
}
