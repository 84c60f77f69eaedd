import { type BucketGroup, type BucketStore, type RuleCharge, withBands } from '../../core/bucket-store.js'
import { type CompiledRule, compileRule } from '../../core/decision/snapshot.js'
import type { Rule } from '../../core/rule.js'
import { defaultMaxWaitMs } from '../../core/waiting/waiting-room.js'
import { keptByBands, parseCallBands } from '../../rules/schema/call-bands.js'

export const ruleSetId = 'limiter'

/** The buckets of the rule of a limiter. Processes that share a store agree on their generation, which `resetAll` increments. */
export class RuleBuckets {
  readonly #rule: Rule
  readonly #store: BucketStore
  #compiled: CompiledRule
  #groupOf: (bands: unknown) => BucketGroup
  #stop: (() => void) | undefined
  /** The first connection attempt. Later decisions do not wait for another one. */
  #attempt: Promise<void> | undefined

  constructor(rule: Rule, store: BucketStore) {
    this.#rule = rule
    this.#store = store
    this.#compiled = this.#compile()
    this.#groupOf = this.#keepGroups()
  }

  /** The charge of the current generation. */
  get charge(): RuleCharge {
    return this.#compiled.charge
  }

  /** Set if the rule enforces for a share of its keys only. */
  get isShadow(): CompiledRule['isShadow'] {
    return this.#compiled.isShadow
  }

  /** The group with the bands of a single call, on the same buckets. */
  withBands(bands: unknown): BucketGroup {
    return this.#groupOf(bands)
  }

  /** False before the first decision about shared buckets: `open` then reads their generation. */
  get isOpen(): boolean {
    const { generations } = this.#store
    return generations === undefined || (generations.isKnown && this.#stop !== undefined)
  }

  /** Reads the generation and keeps it current. If the store is unavailable, the first call returns after its connection timeout. */
  async open(): Promise<void> {
    const { generations, availability } = this.#store
    this.#stop ??= generations?.watch(() => this.#restart())
    if (generations?.isKnown) {
      this.#restart()
      return
    }
    this.#attempt ??= availability?.ready?.().catch(() => {})
    await this.#attempt
  }

  /** Resets all keys of the rule. Other processes notice it within a second. */
  async resetAll(): Promise<void> {
    const { generations } = this.#store
    if (generations === undefined) this.#store.retire?.(this.charge.group)
    else await generations.resetRules(ruleSetId, [this.#rule.id])
  }

  close(): void {
    this.#stop?.()
  }

  #restart(): void {
    const compiled = this.#compile()
    const { group } = this.charge
    if (compiled.group.generation === group.generation) return
    this.#compiled = compiled
    this.#groupOf = this.#keepGroups()
    this.#store.retire?.(group)
  }

  #keepGroups(): (bands: unknown) => BucketGroup {
    const { group } = this.charge
    return keptByBands((bands) => withBands(group, parseCallBands(bands, group.bands)))
  }

  #compile(): CompiledRule {
    const { generations } = this.#store
    return compileRule(ruleSetId, this.#rule, {
      maxWaitMs: defaultMaxWaitMs,
      resetBucketsOnReload: true,
      resets: () => generations?.of(ruleSetId, this.#rule.id) ?? 0,
    })
  }
}
