import type { BucketGroup } from '../core/bucket-store.js'

interface Seen {
  readonly group: BucketGroup
  readonly expiresAtMs: number | undefined
}

/** Of each rule; whoever was seen first is forgotten first. */
const most = 50_000

/** The overrides that this process has come across, for while Redis cannot be asked for them. */
export class SeenOverrides {
  readonly #byGroup = new WeakMap<BucketGroup, Map<string, Seen>>()

  note(rule: BucketGroup, key: string, group: BucketGroup, expiresAtMs: number | undefined): void {
    let seen = this.#byGroup.get(rule)
    if (seen === undefined) {
      seen = new Map()
      this.#byGroup.set(rule, seen)
    }
    seen.delete(key)
    if (seen.size >= most) seen.delete(seen.keys().next().value as string)
    seen.set(key, { group, expiresAtMs })
  }

  forget(rule: BucketGroup, key: string): void {
    this.#byGroup.get(rule)?.delete(key)
  }

  groupOf(rule: BucketGroup, key: string, nowMs: number): BucketGroup | undefined {
    const seen = this.#byGroup.get(rule)?.get(key)
    return seen === undefined || (seen.expiresAtMs ?? Number.POSITIVE_INFINITY) <= nowMs ? undefined : seen.group
  }
}
