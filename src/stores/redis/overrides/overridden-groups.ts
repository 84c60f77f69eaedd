import type { BucketGroup } from '../../../core/bucket-store.js'
import { decodeTerms, expiryOf, limitDigest } from './encoding.js'
import { overriddenGroup } from './overridden-group.js'
import { LastKnownOverrides } from './override-cache.js'

const maxGroupsPerRule = 1_000

/** Caches overridden groups, because many keys share the same override. The memo of a group is then reused as well. */
export class OverriddenGroups {
  readonly #byRule = new WeakMap<BucketGroup, Map<string, BucketGroup>>()
  readonly #lastKnown = new LastKnownOverrides()

  /** The group of a key for which Redis has returned an override, or none. It is kept for `lastKnown`. */
  found(rule: BucketGroup, key: string, override: Buffer | undefined): BucketGroup {
    const group = override === undefined ? rule : this.of(rule, override)
    if (override === undefined) this.#lastKnown.delete(rule, key)
    else this.#lastKnown.set(rule, key, group, expiryOf(override))
    return group
  }

  /** The last known group of a key, otherwise that of the override for its range; undefined without an override. */
  lastKnown(rule: BucketGroup, key: string, nowMs: number, rangeOf: () => Buffer | undefined): BucketGroup | undefined {
    const own = this.#lastKnown.get(rule, key, nowMs)
    if (own !== undefined) return own
    const range = rangeOf()
    return range === undefined || (expiryOf(range) ?? Number.POSITIVE_INFINITY) <= nowMs
      ? undefined
      : this.of(rule, range)
  }

  /** The group of keys with this override, which is given in its encoded form. */
  of(rule: BucketGroup, override: Buffer): BucketGroup {
    const id = override.toString('latin1')
    let groups = this.#byRule.get(rule)
    if (groups === undefined) {
      groups = new Map()
      this.#byRule.set(rule, groups)
    }
    const cached = groups.get(id)
    if (cached !== undefined) return cached
    const group = overriddenGroup(rule, decodeTerms(override), limitDigest)
    if (groups.size >= maxGroupsPerRule) groups.delete(groups.keys().next().value as string)
    groups.set(id, group)
    return group
  }
}
