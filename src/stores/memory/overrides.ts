import type { BucketGroup, Charge } from '../../core/bucket-store.js'
import { ticksPerMs } from '../../core/clock.js'
import { firstFrom, inUtf8Order } from '../../core/keys/utf8-order.js'
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
import { sha256 } from '../../core/runtime/sha256.js'
import { overriddenGroup } from '../redis/overrides/overridden-group.js'

interface StoredOverride {
  readonly terms: OverrideTerms
  /** The group of the override, derived from the group of the last decision. */
  group: BucketGroup | undefined
}

interface RuleOverrides {
  readonly byKey: Map<string, StoredOverride>
  readonly byRange: Map<string, StoredOverride>
  ranges: OverrideRanges<StoredOverride>
  /** All keys and ranges in UTF-8 order. Sorted by the first `list` after a change. */
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
    const stored = (isRange ? rule?.byRange : rule?.byKey)?.get(key)
    return stored === undefined || hasExpired(stored.terms, this.#nowMs()) ? undefined : stored.terms
  }

  async put(name: OverrideId, terms: OverrideTerms): Promise<boolean> {
    const existed = (await this.get(name)) !== undefined
    this.#edit(name, (stored) => stored.set(name.key, { terms, group: undefined }))
    return !existed
  }

  async delete(name: OverrideId): Promise<boolean> {
    const existed = (await this.get(name)) !== undefined
    this.#edit(name, (stored) => stored.delete(name.key))
    return existed
  }

  #edit({ ruleSetId, ruleId, isRange }: OverrideId, edit: (stored: Map<string, StoredOverride>) => void): void {
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
    const isAfterCursor = (key: string): boolean => after === '' || inUtf8Order(key, after) > 0
    for (
      let i = firstFrom(rule.sorted, inUtf8Order(prefix, after) > 0 ? prefix : after, String);
      i < rule.sorted.length;
      i++
    ) {
      const key = rule.sorted[i] as string
      if (!key.startsWith(prefix) && inUtf8Order(key, prefix) > 0) break
      const { terms } = (rule.byKey.get(key) ?? rule.byRange.get(key)) as StoredOverride
      if (!isAfterCursor(key) || hasExpired(terms, nowMs)) continue
      if (entries.length === limit) return { entries, next: entries.at(-1)?.key }
      entries.push({ key, terms })
    }
    return { entries, next: undefined }
  }

  /** Replaces the groups of keys that have an override. Returns undefined if none of them has one. */
  appliedTo(charges: readonly Charge[], now: number): readonly Charge[] | undefined {
    if (this.#rules.size === 0) return undefined
    let applied: Charge[] | undefined
    for (const [i, { group, key, permits, maxWaitTicks, policy, shadow, hold }] of charges.entries()) {
      const instead = this.groupOf(group, key, now)
      if (instead === group) continue
      applied ??= [...charges]
      applied[i] = { group: instead, key, permits, maxWaitTicks, policy, shadow, hold }
    }
    return applied
  }

  /** The group that is charged for a key: that of its override, or else `group`. */
  groupOf(group: BucketGroup, key: string, now: number): BucketGroup {
    const stored = group.hasOverrides ? this.#find(group, key, now / ticksPerMs) : undefined
    if (stored === undefined) return group
    if (stored.group?.insteadOf !== group) stored.group = overriddenGroup(group, stored.terms, limitDigest)
    return stored.group
  }

  /** The tick at which the DENY override of a key expires. Infinity if it does not. */
  deniedUntil({ insteadOf }: BucketGroup, key: string, now: number): number {
    const stored = insteadOf && this.#find(insteadOf, key, now / ticksPerMs)
    return (stored?.terms.expiresAtMs ?? Number.POSITIVE_INFINITY) * ticksPerMs
  }

  #find({ ruleSetId, ruleId, countsAddresses }: BucketGroup, key: string, nowMs: number): StoredOverride | undefined {
    const rule = this.#rules.get(nameOf(ruleSetId, ruleId))
    if (rule === undefined) return undefined
    const own = rule.byKey.get(key)
    if (own !== undefined && !hasExpired(own.terms, nowMs)) return own
    const range = countsAddresses ? rule.ranges.find(key) : undefined
    return range === undefined || hasExpired(range.terms, nowMs) ? undefined : range
  }
}

/** IDs contain no spaces. */
const nameOf = (ruleSetId: string, ruleId: string): string => `${ruleSetId} ${ruleId}`

/** Identifies the bands and the balance, so that a changed override never meets the state of other bands. */
const limitDigest = ({ bands, balance }: OverrideTerms): string =>
  sha256(JSON.stringify([bands, balance]), 'hex').slice(0, 10)
