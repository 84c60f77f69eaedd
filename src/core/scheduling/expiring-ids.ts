/** The most ids that are counted. */
export const maxIds = 100_000

/**
 * Ids with the time at which each expires, such as those of open reservations. Bounded: the ids that were added first are dropped,
 * because this process does not learn of those that another one ends.
 */
export class ExpiringIds {
  readonly #expiresAt = new Map<string, number>()
  readonly #max: number

  constructor(max = maxIds) {
    this.#max = max
  }

  /** The number of ids that have not expired at `now`. */
  count(now: number): number {
    for (const [id, expiresAt] of this.#expiresAt) if (expiresAt <= now) this.#expiresAt.delete(id)
    return this.#expiresAt.size
  }

  /** The time at which an id expires; undefined if it is unknown. */
  expiresAt(id: string): number | undefined {
    return this.#expiresAt.get(id)
  }

  add(id: string, expiresAt: number): void {
    this.#expiresAt.delete(id)
    this.#expiresAt.set(id, expiresAt)
    if (this.#expiresAt.size <= this.#max) return
    const [oldest = ''] = this.#expiresAt.keys()
    this.#expiresAt.delete(oldest)
  }

  /** Returns false if the id was unknown. */
  delete(id: string): boolean {
    return this.#expiresAt.delete(id)
  }
}
