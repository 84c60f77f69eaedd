import type { BucketGroup } from '../../core/bucket-store.js'

/** Requests of a key, and the time of the first of them. */
export interface Demand {
  readonly requests: number
  readonly countedFrom: number
}

/** Slots in which a key may be counted, so that a few busy keys with similar hashes do not displace each other. */
const ways = 4
/** A power of two. All slots together take 128 KiB. */
const setCount = 2_048
/** Numbers per slot: hash, number of requests, and time of the first one. The fourth keeps a set within 64 bytes, a cache line. */
const slotLength = 4
const maxCount = 65_535

/**
 * Finds keys with many requests, in a fixed amount of memory. A slot counts the requests of one key. Another key takes it over
 * once it has asked as often, or once the count is out of date. A key therefore never counts more requests than it made, unless
 * the 32-bit hashes of two keys are equal, and keys with few requests leave no entry behind.
 */
export class HotKeys {
  readonly #slots = new Uint32Array(setCount * ways * slotLength)

  /** Counts a request. Returns the demand of the key if it made at least `minRequests` within `withinMs`, in whole milliseconds. */
  count(seed: number, key: string, now: number, minRequests: number, withinMs: number): Demand | undefined {
    const slots = this.#slots
    const hash = hashOf(seed, key)
    // Whole milliseconds modulo 2³². If the clock steps back, the difference to an earlier time is very large.
    const time = Math.floor(now) >>> 0
    const first = (hash & (setCount - 1)) * ways * slotLength
    let smallest = first
    let fewest = maxCount + 1
    for (let slot = first; slot < first + ways * slotLength; slot += slotLength) {
      const elapsed = (time - (slots[slot + 2] as number)) >>> 0
      let count = slots[slot + 1] as number
      if (elapsed > withinMs) {
        count = 0
        slots[slot + 1] = 0
      } else if (slots[slot] === hash && count !== 0) {
        const requests = Math.min(count + 1, maxCount)
        slots[slot + 1] = requests
        return requests < minRequests ? undefined : { requests, countedFrom: Math.floor(now) - elapsed }
      }
      if (count < fewest) {
        fewest = count
        smallest = slot
      }
    }
    if (fewest > 1) {
      slots[smallest + 1] = fewest - 1
      return undefined
    }
    slots[smallest] = hash
    slots[smallest + 1] = 1
    slots[smallest + 2] = time
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
