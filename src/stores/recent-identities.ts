import type { BucketGroup } from '../core/bucket-store.js'

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
    const known = this.#new.get(group)?.get(key)
    if (known !== undefined) return known
    const before = this.#old.get(group)?.get(key)
    if (before !== undefined) this.set(group, key, before)
    return before
  }

  set(group: BucketGroup, key: string, value: T): void {
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
    known.set(key, value)
  }

  delete(group: BucketGroup, key: string): void {
    if (this.#new.get(group)?.delete(key)) this.#count -= 1
    this.#old.get(group)?.delete(key)
  }

  /** Of all rules. */
  deleteAll(key: string): void {
    for (const group of new Set([...this.#new.keys(), ...this.#old.keys()])) this.delete(group, key)
  }
}
