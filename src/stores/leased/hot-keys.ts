import type { BucketGroup } from '../../core/bucket-store.js'

/** Requests of a key, and the time of the first of them. */
export interface Demand {
  readonly requests: number
  readonly countedFrom: number
}

/** Slots in which a key may be counted, so that a few busy keys with similar hashes do not displace each other. */
const ways = 4
/** A power of two. All slots together take 112 KiB. */
const setCount = 2_048
const maxCount = 65_535

/**
 * Finds keys with many requests, in a fixed amount of memory. A slot counts the requests of one key. Another key takes it over
 * once it has asked as often, or once the count is out of date. A key therefore never counts more requests than it made, unless
 * the 32-bit hashes of two keys are equal, and keys with few requests leave no entry behind.
 */
export class HotKeys {
  readonly #hashes = new Uint32Array(setCount * ways)
  readonly #counts = new Uint16Array(setCount * ways)
  /** The time of the first counted request, in milliseconds. */
  readonly #countedFrom = new Float64Array(setCount * ways)

  /** Counts a request. Returns the demand of the key if it made at least `minRequests` within `withinMs`. */
  count(seed: number, key: string, now: number, minRequests: number, withinMs: number): Demand | undefined {
    const hash = hashOf(seed, key)
    const first = (hash & (setCount - 1)) * ways
    let smallest = first
    for (let slot = first; slot < first + ways; slot++) {
      const elapsed = now - (this.#countedFrom[slot] as number)
      if (elapsed > withinMs || elapsed < 0) this.#counts[slot] = 0
      else if (this.#hashes[slot] === hash && this.#counts[slot] !== 0) {
        const requests = Math.min((this.#counts[slot] as number) + 1, maxCount)
        this.#counts[slot] = requests
        return requests < minRequests ? undefined : { requests, countedFrom: this.#countedFrom[slot] as number }
      }
      if ((this.#counts[slot] as number) < (this.#counts[smallest] as number)) smallest = slot
    }
    if ((this.#counts[smallest] as number) > 1) {
      this.#counts[smallest] = (this.#counts[smallest] as number) - 1
      return undefined
    }
    this.#hashes[smallest] = hash
    this.#counts[smallest] = 1
    this.#countedFrom[smallest] = now
    return minRequests > 1 ? undefined : { requests: 1, countedFrom: now }
  }
}

/** The seed of the keys of a rule. */
export const seedOf = ({ ruleSetId, ruleId, generation }: BucketGroup): number =>
  hashOf(hashOf(hashOf(0, ruleSetId), ruleId), generation)

/** FNV-1a over UTF-16 code units, with a final mix so that all bits depend on the last ones. */
function hashOf(seed: number, text: string): number {
  let hash = seed ^ 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
