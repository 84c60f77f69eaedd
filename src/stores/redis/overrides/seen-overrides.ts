import type { BucketGroup } from '../../../core/bucket-store.js'
import { RecentIdentities } from './recent-identities.js'

interface Seen {
  readonly group: BucketGroup
  readonly expiresAtMs: number | undefined
}

const most = 50_000

/** The overrides that this process has come across, for while Redis cannot be asked for them. */
export class SeenOverrides {
  readonly #seen = new RecentIdentities<Seen>(most)

  note(rule: BucketGroup, key: string, group: BucketGroup, expiresAtMs: number | undefined): void {
    this.#seen.set(rule, key, { group, expiresAtMs })
  }

  forget(rule: BucketGroup, key: string): void {
    this.#seen.delete(rule, key)
  }

  groupOf(rule: BucketGroup, key: string, nowMs: number): BucketGroup | undefined {
    const seen = this.#seen.get(rule, key)
    return seen === undefined || (seen.expiresAtMs ?? Number.POSITIVE_INFINITY) <= nowMs ? undefined : seen.group
  }
}
