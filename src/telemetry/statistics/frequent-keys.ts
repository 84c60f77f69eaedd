import { boundedKey, isLongKey, ownText } from '../../core/keys/bounded-key.js'
import type { KeyCount } from './statistics.js'

export interface SeenKey extends Omit<KeyCount, 'key'> {
  /** As it is counted; of a long key, as it is shown. */
  readonly key: string
  readonly isShown: boolean
  requests: number
  denied: number
  lastAt: number
  /** What it is ranked by: at least its own count, because it begins where others have been forgotten. */
  weight: number
}

/** After so long, a request counts half. */
const halfLifeMs = 300_000
const decayEveryMs = 10_000
/** Of a weight so small nothing is shown. */
const least = 0.01

/**
 * The most frequent of any number of keys, in bounded memory (the space-saving algorithm, pruned in batches): a newcomer
 * begins with the greatest weight that was ever thrown out for want of space, so that a key that comes often is never
 * hidden by many that come once. Weights halve every five minutes.
 */
export class FrequentKeys {
  readonly #most: number
  readonly #show: (key: string) => string
  readonly #entries = new Map<string, SeenKey>()
  #floor = 0
  #decayedAt: number | undefined

  /** `show` is called for a long key, which is not kept. */
  constructor(most: number, show: (key: string) => string) {
    this.#most = most
    this.#show = show
  }

  get size(): number {
    return this.#entries.size
  }

  add(
    { ruleSetId, ruleId, key }: Pick<SeenKey, 'ruleSetId' | 'ruleId' | 'key'>,
    isDenied: boolean,
    weight: number,
    at: number,
  ): void {
    this.#decay(at)
    // Ids have no line breaks, so that no two tuples have the same name.
    const name = `${ruleSetId}\n${ruleId}\n${boundedKey(key)}`
    let entry = this.#entries.get(name)
    if (entry === undefined) {
      const isShown = isLongKey(key)
      const kept = ownText(isShown ? this.#show(key) : key)
      entry = { ruleSetId, ruleId, key: kept, isShown, requests: 0, denied: 0, lastAt: at, weight: this.#floor }
      this.#entries.set(ownText(name), entry)
    }
    entry.requests += weight
    if (isDenied) entry.denied += weight
    entry.weight += weight
    entry.lastAt = at
    if (this.#entries.size >= 2 * this.#most) this.#prune()
  }

  /** The heaviest first, of those that are wanted. */
  read(at: number, isWanted: (entry: SeenKey) => boolean = () => true): SeenKey[] {
    this.#decay(at)
    return [...this.#entries.values()].filter(isWanted).sort((a, b) => b.weight - a.weight)
  }

  /** Half of them at once, so that the sorting is paid for by as many newcomers. */
  #prune(): void {
    const sorted = [...this.#entries].sort(([, a], [, b]) => b.weight - a.weight)
    for (const [name, { weight }] of sorted.slice(this.#most)) {
      this.#floor = Math.max(this.#floor, weight)
      this.#entries.delete(name)
    }
  }

  #decay(at: number): void {
    this.#decayedAt ??= at
    const passedMs = at - this.#decayedAt
    if (passedMs < decayEveryMs) return
    this.#decayedAt = at
    const factor = 0.5 ** (passedMs / halfLifeMs)
    this.#floor *= factor
    for (const [name, entry] of this.#entries) {
      entry.weight *= factor
      entry.requests *= factor
      entry.denied *= factor
      if (entry.requests < least) this.#entries.delete(name)
    }
  }
}
