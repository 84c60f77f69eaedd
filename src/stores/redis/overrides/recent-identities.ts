import type { BucketGroup } from '../../../core/bucket-store.js'
import { boundedKey, ownText } from '../../../core/keys/bounded-key.js'

type ByGroup<T> = Map<BucketGroup, Map<string, T>>

/**
 * What is known of identities, by their rule: of at most so many, all rules together. They are kept in two halves; once the
 * new one is full the old one is forgotten, and with it whoever has not been asked for since.
 */
export class RecentIdentities<T> {
  readonly #half: number
  #new: ByGroup<T> = new Map()
  #old: ByGroup<T> = new Map()
  #count = 0

  constructor(most: number) {
    this.#half = most / 2
  }

  get(group: BucketGroup, key: string): T | undefined {
    const stored = boundedKey(key)
    const known = this.#new.get(group)?.get(stored)
    if (known !== undefined) return known
    const before = this.#old.get(group)?.get(stored)
    if (before !== undefined) this.#set(group, stored, before)
    return before
  }

  set(group: BucketGroup, key: string, value: T): void {
    this.#set(group, boundedKey(key), value)
  }

  #set(group: BucketGroup, key: string, value: T): void {
    let known = this.#new.get(group)
    if (known?.has(key) !== true && ++this.#count > this.#half) {
      this.#old = this.#new
      this.#new = new Map()
      this.#count = 1
      known = undefined
    }
    if (known === undefined) {
      known = new Map()
      this.#new.set(group, known)
    }
    known.set(known.has(key) ? key : ownText(key), value)
  }

  delete(group: BucketGroup, key: string): void {
    const stored = boundedKey(key)
    if (this.#new.get(group)?.delete(stored)) this.#count -= 1
    this.#old.get(group)?.delete(stored)
  }

  /** Of all rules. */
  deleteAll(key: string): void {
    for (const group of new Set([...this.#new.keys(), ...this.#old.keys()])) this.delete(group, key)
  }
}
