import { createBuckets, Rows } from '../../../algorithms/index.js'
import type { BucketGroup, Charge } from '../../../core/bucket-store.js'
import type { LastEdit, Work } from '../work.js'
import { readEdit } from './edits.js'
import { RecentIdentities } from './recent-identities.js'
import { expires } from './value.js'

/** A claim on behalf of an identity of which it is known whether it has an override, and which. */
export interface CachedCharge extends Charge {
  readonly isBelieved?: true
}

/**
 * Which overrides were found lately, and who has none. As long as nobody has edited one, which the script compares once for
 * a whole call, there is nothing to look up for these identities. Nobody relies on it: after an edit the call does nothing
 * and says so, and what was edited is not believed any more.
 */
export class OverrideCache {
  /** The last one that they know of. */
  edit: LastEdit
  /** Which generations were in force. */
  readonly generations: object
  readonly #groups: RecentIdentities<BucketGroup>

  /** `most` is how many identities are remembered. */
  constructor(edit: LastEdit, generations: object, most: number) {
    this.edit = edit
    this.generations = generations
    this.#groups = new RecentIdentities(most)
  }

  /** The work as it is believed to be; the same one if nothing is believed of its identities. */
  applyTo(work: Work): Work {
    if (work.what !== 'CHARGE' && work.what !== 'PEEK') return work
    let claims: CachedCharge[] | undefined
    for (let i = 0; i < work.claims.length; i++) {
      const claim = work.claims[i] as Charge
      if (!claim.group.hasOverrides) continue
      const { key, permits, maxWaitTicks, policy, shadow } = claim
      const believed = this.#groups.get(claim.group, key)
      if (believed === undefined) continue
      claims ??= [...work.claims]
      claims[i] = { group: believed, key, permits, maxWaitTicks, policy, shadow, isBelieved: true }
    }
    return claims === undefined ? work : { what: work.what, claims }
  }

  /** Takes note of an edit. False if there were others in between, which may have been about anybody. */
  follow(known: string): boolean {
    const { before, key } = readEdit(known)
    if (before !== readEdit(this.edit.known).id) return false
    this.#groups.deleteAll(key)
    this.edit = { key: this.edit.key, known }
    return true
  }

  /**
   * `group` counts this identity, by the override that it has; or if it has none, the rule's own. So it was at the edit that
   * the call relied on. `now` is the store's.
   */
  learn(
    rule: BucketGroup,
    key: string,
    group: BucketGroup,
    found: { readonly override: Buffer | undefined; readonly edit: LastEdit; readonly now: number },
  ): void {
    const { override, edit, now } = found
    if (edit === this.edit && (override === undefined || isLasting(group, override, now)))
      this.#groups.set(rule, key, group)
  }
}

/** A denial is no bucket; what expires has to be looked at; and a bucket begins with a balance only where that is read. */
const isLasting = ({ listed, bands }: BucketGroup, override: Buffer, now: number): boolean =>
  listed !== 'DENY' &&
  ((override[0] as number) & expires) === 0 &&
  bands.every((band) => band.spent === undefined || createBuckets(band, new Rows()).expiresAt(0, band) <= now)
