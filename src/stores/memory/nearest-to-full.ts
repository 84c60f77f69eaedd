import type { RuleTable } from './rule-tables.js'

/** One that may be forgotten, and the instant from which its buckets mean the same as none. */
interface Candidate {
  readonly table: RuleTable
  readonly key: string
  readonly expiresAt: number
}

/** Whether one that would be full at `expiresAt` may be forgotten now. */
export type MayGo = (table: RuleTable, key: string, expiresAt: number) => boolean

/** So many are remembered from one search for the next ones. */
const most = 64

/** Of the identities that were looked at, the few that are nearest to having full buckets: those to forget next. */
export class NearestToFull {
  /** The nearest one is the last. */
  readonly #candidates: Candidate[] = []

  /** Whether one that expires then would be remembered. */
  wants(expiresAt: number): boolean {
    return this.#candidates.length < most || expiresAt < (this.#candidates[0] as Candidate).expiresAt
  }

  add(candidate: Candidate): void {
    if (this.#candidates.length === most) this.#candidates.shift()
    let at = this.#candidates.length
    while (at > 0 && (this.#candidates[at - 1] as Candidate).expiresAt < candidate.expiresAt) at--
    this.#candidates.splice(at, 0, candidate)
  }

  /** The nearest one of which that is still true. */
  take(mayGo: MayGo): Candidate | undefined {
    for (let next = this.#candidates.pop(); next !== undefined; next = this.#candidates.pop()) {
      const { table, key, expiresAt } = next
      const isThere = table.group !== undefined && table.slotOf(key) !== undefined
      if (isThere && table.expiresAt(key) === expiresAt && mayGo(table, key, expiresAt)) return next
    }
    return undefined
  }

  clear(): void {
    this.#candidates.length = 0
  }
}
