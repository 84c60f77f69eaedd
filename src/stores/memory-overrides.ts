import type { BucketGroup, Demand } from '../core/bucket-store.js'
import { ticksPerMs } from '../core/clock.js'
import {
  type EntryQuery,
  entryPage,
  isOver,
  type OverrideBook,
  type OverrideEntry,
  type OverrideName,
  type OverrideTerms,
} from '../core/override-book.js'
import { OverrideRanges } from '../core/override-ranges.js'
import { overriddenGroup } from './overridden-group.js'

interface Kept {
  readonly terms: OverrideTerms
  /** Made for the group that asked last: there is one at a time. */
  group: BucketGroup | undefined
}

interface RuleOverrides {
  readonly byKey: Map<string, Kept>
  readonly byRange: Map<string, Kept>
  ranges: OverrideRanges<Kept>
}

/** Overrides in this process. */
export class MemoryOverrides implements OverrideBook {
  readonly #rules = new Map<string, RuleOverrides>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  async get({ ruleSetId, ruleId, key, isRange }: OverrideName): Promise<OverrideTerms | undefined> {
    const rule = this.#rules.get(nameOf(ruleSetId, ruleId))
    const kept = (isRange ? rule?.byRange : rule?.byKey)?.get(key)
    return kept === undefined || isOver(kept.terms, this.#nowMs()) ? undefined : kept.terms
  }

  async put(name: OverrideName, terms: OverrideTerms): Promise<boolean> {
    const wasThere = (await this.get(name)) !== undefined
    this.#edit(name, (kept) => kept.set(name.key, { terms, group: undefined }))
    return !wasThere
  }

  async delete(name: OverrideName): Promise<boolean> {
    const wasThere = (await this.get(name)) !== undefined
    this.#edit(name, (kept) => kept.delete(name.key))
    return wasThere
  }

  #edit({ ruleSetId, ruleId, isRange }: OverrideName, edit: (kept: Map<string, Kept>) => void): void {
    const name = nameOf(ruleSetId, ruleId)
    const rule = this.#rules.get(name) ?? { byKey: new Map(), byRange: new Map(), ranges: new OverrideRanges([]) }
    edit(isRange ? rule.byRange : rule.byKey)
    if (isRange) rule.ranges = new OverrideRanges(rule.byRange)
    if (rule.byKey.size + rule.byRange.size > 0) this.#rules.set(name, rule)
    else this.#rules.delete(name)
  }

  async list(ruleSetId: string, ruleId: string, query: EntryQuery): Promise<readonly OverrideEntry[]> {
    const { byKey = [], byRange = [] } = this.#rules.get(nameOf(ruleSetId, ruleId)) ?? {}
    const nowMs = this.#nowMs()
    const entries = [...byKey, ...byRange].map(([key, { terms }]) => ({ key, terms }))
    return entryPage(
      entries.filter(({ terms }) => !isOver(terms, nowMs)),
      query,
    )
  }

  /** The demands as they are to be decided; `undefined` if none of their identities has an override. */
  appliedTo(demands: readonly Demand[], now: number): readonly Demand[] | undefined {
    if (this.#rules.size === 0) return undefined
    let applied: Demand[] | undefined
    for (const [i, { group, key, permits, patience, policy, shadow }] of demands.entries()) {
      const instead = this.groupOf(group, key, now)
      if (instead === group) continue
      applied ??= [...demands]
      applied[i] = { group: instead, key, permits, patience, policy, shadow }
    }
    return applied
  }

  /** The group that counts this identity. */
  groupOf(group: BucketGroup, key: string, now: number): BucketGroup {
    const kept = group.hasOverrides ? this.#find(group, key, now / ticksPerMs) : undefined
    if (kept === undefined) return group
    if (kept.group?.insteadOf !== group) kept.group = overriddenGroup(group, kept.terms)
    return kept.group
  }

  /** When the refusal of an identity that is denied ends, in ticks. */
  deniedUntil({ insteadOf }: BucketGroup, key: string, now: number): number {
    const kept = insteadOf && this.#find(insteadOf, key, now / ticksPerMs)
    return (kept?.terms.expiresAtMs ?? Number.POSITIVE_INFINITY) * ticksPerMs
  }

  #find({ ruleSetId, ruleId, countsAddresses }: BucketGroup, key: string, nowMs: number): Kept | undefined {
    const rule = this.#rules.get(nameOf(ruleSetId, ruleId))
    if (rule === undefined) return undefined
    const own = rule.byKey.get(key)
    if (own !== undefined && !isOver(own.terms, nowMs)) return own
    const range = countsAddresses ? rule.ranges.find(key) : undefined
    return range === undefined || isOver(range.terms, nowMs) ? undefined : range
  }
}

/** Neither id holds a space. */
const nameOf = (ruleSetId: string, ruleId: string): string => `${ruleSetId} ${ruleId}`
