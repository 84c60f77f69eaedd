import type { BucketGroup } from '../../../core/bucket-store.js'
import type { OverrideTerms } from '../../../core/overrides/override-storage.js'
import { limitDigest } from './encoding.js'
import { overriddenGroup } from './overridden-group.js'

const maxGroupsPerRule = 1_000

/** Caches overridden groups, because many keys share the same override. The memo of a group is then reused as well. */
export class OverriddenGroups {
  readonly #byRule = new WeakMap<BucketGroup, Map<string, BucketGroup>>()

  /** `id` identifies the terms: it is equal if and only if they are. */
  get(rule: BucketGroup, id: string, terms: () => OverrideTerms): BucketGroup {
    let groups = this.#byRule.get(rule)
    if (groups === undefined) {
      groups = new Map()
      this.#byRule.set(rule, groups)
    }
    const cached = groups.get(id)
    if (cached !== undefined) return cached
    const group = overriddenGroup(rule, terms(), limitDigest)
    if (groups.size >= maxGroupsPerRule) groups.delete(groups.keys().next().value as string)
    groups.set(id, group)
    return group
  }
}
