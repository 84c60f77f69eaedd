import type { RuleTable } from './rule-tables.js'

/** A key that may be evicted, and the tick from which its buckets are equivalent to unused ones. */
interface Candidate {
  readonly table: RuleTable
  readonly key: string
  readonly expiresAt: number
}

/** True if a key with this expiry can be evicted now. */
export type CanEvict = (table: RuleTable, key: string, expiresAt: number) => boolean

/** The number of candidates kept for later searches. */
const maxCandidates = 64

/** The inspected keys whose buckets are closest to full, which are the next ones to evict. */
export class NearestToFull {
  /** The closest one is the last. */
  readonly #candidates: Candidate[] = []

  /** True if a key with this expiry would be kept as a candidate. */
  wants(expiresAt: number): boolean {
    return this.#candidates.length < maxCandidates || expiresAt < (this.#candidates[0] as Candidate).expiresAt
  }

  add(candidate: Candidate): void {
    if (this.#candidates.length === maxCandidates) this.#candidates.shift()
    let at = this.#candidates.length
    while (at > 0 && (this.#candidates[at - 1] as Candidate).expiresAt < candidate.expiresAt) at--
    this.#candidates.splice(at, 0, candidate)
  }

  /** Removes and returns the closest candidate that has not changed since and can be evicted. */
  take(canEvict: CanEvict): Candidate | undefined {
    for (let next = this.#candidates.pop(); next !== undefined; next = this.#candidates.pop()) {
      const { table, key, expiresAt } = next
      const exists = table.group !== undefined && table.slotOf(key) !== undefined
      if (exists && table.expiresAt(key) === expiresAt && canEvict(table, key, expiresAt)) return next
    }
    return undefined
  }

  clear(): void {
    this.#candidates.length = 0
  }
}
