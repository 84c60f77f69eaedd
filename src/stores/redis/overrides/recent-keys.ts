import type { BucketGroup } from '../../../core/bucket-store.js'
import { boundedKey, ownText } from '../../../core/keys/bounded-key.js'

type ByGroup<T> = Map<BucketGroup, Map<string, T>>

/**
 * A cache of values by rule and rate limit key, bounded over all rules. It approximates LRU with two generations: when the new one
 * is full, it replaces the old one, and the entries that were not used since are evicted.
 */
export class RecentKeys<T> {
  readonly #half: number
  #new: ByGroup<T> = new Map()
  #old: ByGroup<T> = new Map()
  #count = 0

  constructor(maxKeys: number) {
    this.#half = maxKeys / 2
  }

  get(group: BucketGroup, key: string): T | undefined {
    const stored = boundedKey(key)
    const recent = this.#new.get(group)?.get(stored)
    if (recent !== undefined) return recent
    const older = this.#old.get(group)?.get(stored)
    if (older !== undefined) this.#set(group, stored, older)
    return older
  }

  set(group: BucketGroup, key: string, value: T): void {
    this.#set(group, boundedKey(key), value)
  }

  #set(group: BucketGroup, key: string, value: T): void {
    let values = this.#new.get(group)
    if (values?.has(key) !== true && ++this.#count > this.#half) {
      this.#old = this.#new
      this.#new = new Map()
      this.#count = 1
      values = undefined
    }
    if (values === undefined) {
      values = new Map()
      this.#new.set(group, values)
    }
    values.set(values.has(key) ? key : ownText(key), value)
  }

  delete(group: BucketGroup, key: string): void {
    const stored = boundedKey(key)
    if (this.#new.get(group)?.delete(stored)) this.#count -= 1
    this.#old.get(group)?.delete(stored)
  }

  /** Deletes the key for all rules. */
  deleteAll(key: string): void {
    for (const group of new Set([...this.#new.keys(), ...this.#old.keys()])) this.delete(group, key)
  }
}
