import { boundedKey, isLongKey, ownText } from '../../core/keys/bounded-key.js'
import type { KeyCount } from './statistics.js'

export interface KeyEntry extends Omit<KeyCount, 'key'> {
  /** The key; a long key in the form in which it is shown. */
  readonly key: string
  readonly isFormatted: boolean
  /** Identifies the rule and the key, also in another instance. */
  readonly name: string
  requests: number
  denied: number
  lastAt: number
  /** The rank of the key: an upper bound of its count, because it includes the weight of evicted keys. */
  weight: number
}

/** The time after which the weight of a request halves. */
const halfLifeMs = 300_000
const decayIntervalMs = 10_000
/** Keys below this weight are not returned. */
const minWeight = 0.01

/**
 * Finds the most frequent keys in bounded memory with the space-saving algorithm, pruned in batches. A new key starts with the
 * greatest weight that was ever evicted, so a frequent key is never hidden by many rare ones. Weights halve every five minutes.
 */
export class FrequentKeys {
  readonly #maxKeys: number
  readonly #show: (key: string) => string
  readonly #entries = new Map<string, KeyEntry>()
  #floor = 0
  #decayedAt: number | undefined

  /** `show` formats long keys, which are not kept in full. */
  constructor(maxKeys: number, show: (key: string) => string) {
    this.#maxKeys = maxKeys
    this.#show = show
  }

  get size(): number {
    return this.#entries.size
  }

  add(
    { ruleSetId, ruleId, key }: Pick<KeyEntry, 'ruleSetId' | 'ruleId' | 'key'>,
    isDenied: boolean,
    weight: number,
    at: number,
  ): void {
    this.#decay(at)
    // Ids contain no line breaks, so different tuples have different names.
    const name = `${ruleSetId}\n${ruleId}\n${boundedKey(key)}`
    let entry = this.#entries.get(name)
    if (entry === undefined) {
      const isFormatted = isLongKey(key)
      const kept = ownText(isFormatted ? this.#show(key) : key)
      const id = { ruleSetId, ruleId, key: kept, isFormatted, name: ownText(name) }
      entry = { ...id, requests: 0, denied: 0, lastAt: at, weight: this.#floor }
      this.#entries.set(id.name, entry)
    }
    entry.requests += weight
    if (isDenied) entry.denied += weight
    entry.weight += weight
    entry.lastAt = at
    if (this.#entries.size >= 2 * this.#maxKeys) this.#prune()
  }

  /** Returns the matching keys, heaviest first. */
  read(at: number, matches: (entry: KeyEntry) => boolean = () => true): KeyEntry[] {
    this.#decay(at)
    return [...this.#entries.values()].filter(matches).sort((a, b) => b.weight - a.weight)
  }

  find(name: string, at: number): KeyEntry | undefined {
    this.#decay(at)
    return this.#entries.get(name)
  }

  /** Evicts half of the keys at once, so that the cost of sorting is spread over as many new keys. */
  #prune(): void {
    const sorted = [...this.#entries].sort(([, a], [, b]) => b.weight - a.weight)
    for (const [name, { weight }] of sorted.slice(this.#maxKeys)) {
      this.#floor = Math.max(this.#floor, weight)
      this.#entries.delete(name)
    }
  }

  #decay(at: number): void {
    this.#decayedAt ??= at
    const elapsedMs = at - this.#decayedAt
    if (elapsedMs < decayIntervalMs) return
    this.#decayedAt = at
    const factor = 0.5 ** (elapsedMs / halfLifeMs)
    this.#floor *= factor
    for (const [name, entry] of this.#entries) {
      entry.weight *= factor
      entry.requests *= factor
      entry.denied *= factor
      if (entry.requests < minWeight) this.#entries.delete(name)
    }
  }
}
