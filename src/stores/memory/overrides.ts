import type { BucketGroup, Charge } from '../../core/bucket-store.js'
import { ticksPerMs } from '../../core/clock.js'
import { inUtf8Order } from '../../core/keys/utf8-order.js'
import { OverrideRanges } from '../../core/overrides/override-ranges.js'
import {
  type EntryPage,
  type EntryQuery,
  hasExpired,
  type OverrideEntry,
  type OverrideId,
  type OverrideStorage,
  type OverrideTerms,
} from '../../core/overrides/override-storage.js'
import { overriddenGroup } from '../redis/overrides/overridden-group.js'

interface Kept {
  readonly terms: OverrideTerms
  /** Made for the group that asked last: there is one at a time. */
  group: BucketGroup | undefined
}

interface RuleOverrides {
  readonly byKey: Map<string, Kept>
  readonly byRange: Map<string, Kept>
  ranges: OverrideRanges<Kept>
  /** The keys of both in their order, once somebody has asked for it. */
  sorted: readonly string[] | undefined
}

/** Overrides in this process. */
export class MemoryOverrides implements OverrideStorage {
  readonly #rules = new Map<string, RuleOverrides>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  async get({ ruleSetId, ruleId, key, isRange }: OverrideId): Promise<OverrideTerms | undefined> {
    const rule = this.#rules.get(nameOf(ruleSetId, ruleId))
    const kept = (isRange ? rule?.byRange : rule?.byKey)?.get(key)
    return kept === undefined || hasExpired(kept.terms, this.#nowMs()) ? undefined : kept.terms
  }

  async put(name: OverrideId, terms: OverrideTerms): Promise<boolean> {
    const wasThere = (await this.get(name)) !== undefined
    this.#edit(name, (kept) => kept.set(name.key, { terms, group: undefined }))
    return !wasThere
  }

  async delete(name: OverrideId): Promise<boolean> {
    const wasThere = (await this.get(name)) !== undefined
    this.#edit(name, (kept) => kept.delete(name.key))
    return wasThere
  }

  #edit({ ruleSetId, ruleId, isRange }: OverrideId, edit: (kept: Map<string, Kept>) => void): void {
    const name = nameOf(ruleSetId, ruleId)
    const rule: RuleOverrides = this.#rules.get(name) ?? {
      byKey: new Map(),
      byRange: new Map(),
      ranges: new OverrideRanges([]),
      sorted: undefined,
    }
    const before = rule.byKey.size + rule.byRange.size
    edit(isRange ? rule.byRange : rule.byKey)
    if (rule.byKey.size + rule.byRange.size !== before) rule.sorted = undefined
    if (isRange) rule.ranges = new OverrideRanges(rule.byRange)
    if (rule.byKey.size + rule.byRange.size > 0) this.#rules.set(name, rule)
    else this.#rules.delete(name)
  }

  async list(ruleSetId: string, ruleId: string, { prefix, after, limit }: EntryQuery): Promise<EntryPage> {
    const rule = this.#rules.get(nameOf(ruleSetId, ruleId))
    if (rule === undefined) return { entries: [], next: undefined }
    rule.sorted ??= [...rule.byKey.keys(), ...rule.byRange.keys()].sort(inUtf8Order)
    const nowMs = this.#nowMs()
    const entries: OverrideEntry[] = []
    const isBehind = (key: string): boolean => after === '' || inUtf8Order(key, after) > 0
    for (let i = firstFrom(rule.sorted, inUtf8Order(prefix, after) > 0 ? prefix : after); i < rule.sorted.length; i++) {
      const key = rule.sorted[i] as string
      if (!key.startsWith(prefix) && inUtf8Order(key, prefix) > 0) break
      const { terms } = (rule.byKey.get(key) ?? rule.byRange.get(key)) as Kept
      if (!isBehind(key) || hasExpired(terms, nowMs)) continue
      if (entries.length === limit) return { entries, next: entries.at(-1)?.key }
      entries.push({ key, terms })
    }
    return { entries, next: undefined }
  }

  /** Replaces the groups of keys that have an override. Returns undefined if none of them has one. */
  appliedTo(charges: readonly Charge[], now: number): readonly Charge[] | undefined {
    if (this.#rules.size === 0) return undefined
    let applied: Charge[] | undefined
    for (const [i, { group, key, permits, maxWaitTicks, policy, shadow }] of charges.entries()) {
      const instead = this.groupOf(group, key, now)
      if (instead === group) continue
      applied ??= [...charges]
      applied[i] = { group: instead, key, permits, maxWaitTicks, policy, shadow }
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
    if (own !== undefined && !hasExpired(own.terms, nowMs)) return own
    const range = countsAddresses ? rule.ranges.find(key) : undefined
    return range === undefined || hasExpired(range.terms, nowMs) ? undefined : range
  }
}

/** The place of the first that is not before `key`. */
function firstFrom(sorted: readonly string[], key: string): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (inUtf8Order(sorted[middle] as string, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Neither id holds a space. */
const nameOf = (ruleSetId: string, ruleId: string): string => `${ruleSetId} ${ruleId}`
