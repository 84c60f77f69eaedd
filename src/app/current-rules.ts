import type { BucketReset } from '../core/bucket-reset-handler.js'
import type { BucketStore, SharedResets } from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import type { Rule, RuleSet } from '../core/rule.js'
import { type CompiledRule, compileSnapshot, type Snapshot } from '../core/snapshot.js'
import { defaultMaxWaitMs } from '../core/waiting-room.js'
import { BucketGenerations } from './bucket-generations.js'
import type { FluxGateOptions } from './gate-options.js'

/** The rules that decisions are made by, compiled, and which buckets of theirs are in force. */
export class CurrentRules {
  readonly #options: FluxGateOptions
  readonly #store: Pick<BucketStore, 'retire'>
  /** Counted by all processes that share the store, where it can do that. */
  readonly #shared: SharedResets | undefined
  readonly #own = new BucketGenerations()
  #ruleSets: readonly RuleSet[]
  #snapshot: Snapshot

  constructor(options: FluxGateOptions, ruleSets: readonly RuleSet[], store: Pick<BucketStore, 'retire' | 'resets'>) {
    this.#options = options
    this.#store = store
    this.#shared = store.resets
    this.#ruleSets = ruleSets
    this.#snapshot = this.#compile()
  }

  get snapshot(): Snapshot {
    return this.#snapshot
  }

  ruleOf(ruleSetId: string, ruleId: string): Rule | undefined {
    return this.#snapshot.ruleSets.get(ruleSetId)?.rules.get(ruleId)?.rule
  }

  /** One rule, or all of a rule set. */
  choose(ruleSetId: string, ruleId: string | undefined): readonly CompiledRule[] {
    const rules = this.#snapshot.ruleSets.get(ruleSetId)?.rules
    const chosen = [...(rules?.values() ?? [])].filter(({ rule }) => ruleId === undefined || rule.id === ruleId)
    if (chosen.length > 0) return chosen
    const which = ruleId === undefined ? 'rule' : `rule "${ruleId}"`
    throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `There is no ${which} in rule set "${ruleSetId}".`)
  }

  /** Others decide by them from now on; a decision under way keeps those it began with. */
  replace(ruleSets: readonly RuleSet[]): void {
    const resetChanged = this.#options.reload?.resetBucketsOnReload ?? true
    if (this.#shared === undefined) this.#own.compare(this.#snapshot, ruleSets, resetChanged)
    this.#ruleSets = ruleSets
    this.compileAgain()
  }

  async startAfresh(ruleSetId: string, ruleIds: readonly string[]): Promise<void> {
    if (this.#shared === undefined) for (const ruleId of ruleIds) this.#own.startAfresh(ruleSetId, ruleId)
    else await this.#shared.startAfresh(ruleSetId, ruleIds)
    this.compileAgain()
  }

  /** After a reset. Tells the store which buckets nobody will ask for again. */
  compileAgain(): void {
    const before = this.#snapshot
    this.#snapshot = this.#compile()
    for (const [ruleSetId, { rules }] of before.ruleSets) {
      const now = this.#snapshot.ruleSets.get(ruleSetId)?.rules
      const reset = [...rules.values()].filter(
        ({ rule, group }) => now?.get(rule.id)?.group.generation !== group.generation,
      )
      for (const { group } of reset) this.#store.retire?.(group)
      if (reset.length > 0) this.#tell({ ruleSetId, ruleIds: reset.map(({ rule }) => rule.id) })
    }
  }

  #compile(): Snapshot {
    const { defaultRuleSetId, keyResolvers, ipv6Prefix, reload, waitForRefill } = this.#options
    return compileSnapshot(this.#ruleSets, {
      defaultRuleSetId,
      resolvers: keyResolvers,
      ipv6Prefix,
      maxWaitMs: waitForRefill?.maxWaitMs ?? defaultMaxWaitMs,
      resetBucketsOnReload: reload?.resetBucketsOnReload ?? true,
      resets: (ruleSetId, ruleId) => (this.#shared ?? this.#own).of(ruleSetId, ruleId),
    })
  }

  #tell(reset: BucketReset): void {
    const handler = this.#options.bucketResetHandler
    if (handler !== undefined) queueMicrotask(() => handler.bucketsReset(reset))
  }
}
