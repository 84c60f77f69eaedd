import type { BucketReset } from '../core/bucket-reset-handler.js'
import type { BucketStore, SharedResets } from '../core/bucket-store.js'
import {
  type CompiledRule,
  compileSnapshot,
  type Snapshot,
  type SnapshotOptions,
  snapshotSteps,
} from '../core/decision/snapshot.js'
import { FluxGateError } from '../core/errors.js'
import type { Rule, RuleSet } from '../core/rule.js'
import { inSlices, type Steps } from '../core/scheduling/steps.js'
import { defaultMaxWaitMs } from '../core/waiting/waiting-room.js'
import { BucketGenerations } from './bucket-generations.js'
import type { FluxGateOptions } from './options.js'

/** The rules that decisions are made by, compiled, and which buckets of theirs are in force. */
export class CurrentRules {
  readonly #options: FluxGateOptions
  readonly #store: Pick<BucketStore, 'retire'>
  /** Counted by all processes that share the store, where it can do that. */
  readonly #shared: SharedResets | undefined
  readonly #own = new BucketGenerations()
  #ruleSets: readonly RuleSet[]
  /** Used by the next decision. */
  snapshot: Snapshot
  /** Of large rule sets: the compilation that runs, and the one that is to follow for the sake of resets. */
  #running: Promise<void> | undefined
  #again: Promise<void> | undefined

  constructor(options: FluxGateOptions, ruleSets: readonly RuleSet[], store: Pick<BucketStore, 'retire' | 'resets'>) {
    this.#options = options
    this.#store = store
    this.#shared = store.resets
    this.#ruleSets = ruleSets
    this.snapshot = compileSnapshot(ruleSets, this.#snapshotOptions())
  }

  /** Those of the snapshot. */
  get ruleSets(): readonly RuleSet[] {
    return this.#ruleSets
  }

  ruleOf(ruleSetId: string, ruleId: string): Rule | undefined {
    return this.snapshot.plans.get(ruleSetId)?.rules.get(ruleId)?.rule
  }

  /** One rule, or all of a rule set. */
  choose(ruleSetId: string, ruleId: string | undefined): readonly CompiledRule[] {
    const rules = this.snapshot.plans.get(ruleSetId)?.rules
    const chosen = [...(rules?.values() ?? [])].filter(({ rule }) => ruleId === undefined || rule.id === ruleId)
    if (chosen.length > 0) return chosen
    const which = ruleId === undefined ? 'rule' : `rule "${ruleId}"`
    throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `There is no ${which} in rule set "${ruleSetId}".`)
  }

  /** Done when decisions are made by them; a decision in flight keeps those it began with. */
  replace(ruleSets: readonly RuleSet[]): void | Promise<void> {
    return this.#inTurn(() => this.#replaceSteps(ruleSets))
  }

  *#replaceSteps(ruleSets: readonly RuleSet[]): Steps<void> {
    const resetChanged = this.#options.reload?.resetBucketsOnReload ?? true
    if (this.#shared === undefined) yield* this.#own.compare(this.snapshot, ruleSets, resetChanged)
    yield* this.#compileSteps(ruleSets)
  }

  async startAfresh(ruleSetId: string, ruleIds: readonly string[]): Promise<void> {
    if (this.#shared === undefined) for (const ruleId of ruleIds) this.#own.startAfresh(ruleSetId, ruleId)
    else await this.#shared.startAfresh(ruleSetId, ruleIds)
    await this.compileAgain()
  }

  /** After a reset. Requests for it share the next compilation, which reads all counts when it starts. */
  compileAgain(): void | Promise<void> {
    if (this.#running === undefined) return this.#inTurn(() => this.#compileSteps(this.#ruleSets))
    this.#again ??= this.#running.then(() => {
      this.#again = undefined
      return this.compileAgain()
    })
    return this.#again
  }

  /** One compilation at a time, because each compares its result with what was in force before. */
  #inTurn(work: () => Steps<void>): void | Promise<void> {
    const done = this.#running === undefined ? inSlices(work()) : this.#running.then(() => inSlices(work()))
    if (done === undefined) return
    const running: Promise<void> = done
      // Whoever asked for it gets the error; what follows runs in any case.
      .catch(() => {})
      .then(() => {
        if (this.#running === running) this.#running = undefined
      })
    this.#running = running
    return done
  }

  /** Puts a new snapshot in force, all at once, and then tells the store which buckets nobody will ask for again. */
  *#compileSteps(ruleSets: readonly RuleSet[]): Steps<void> {
    const snapshot = yield* snapshotSteps(ruleSets, this.#snapshotOptions())
    const before = this.snapshot
    this.snapshot = snapshot
    this.#ruleSets = ruleSets
    for (const [ruleSetId, { rules }] of before.plans) {
      const now = snapshot.plans.get(ruleSetId)?.rules
      const ruleIds: string[] = []
      for (const { rule, group } of rules.values()) {
        yield
        if (now?.get(rule.id)?.group.generation === group.generation) continue
        this.#store.retire?.(group)
        ruleIds.push(rule.id)
      }
      if (ruleIds.length > 0) this.#tell({ ruleSetId, ruleIds })
    }
  }

  #snapshotOptions(): SnapshotOptions {
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

  #tell(reset: BucketReset): void {
    const handler = this.#options.bucketResetHandler
    if (handler !== undefined) queueMicrotask(() => handler.bucketsReset(reset))
  }
}
