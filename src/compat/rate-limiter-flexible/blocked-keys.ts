/** At this number of keys, expired blocks are removed. */
const sweepSize = 1_000

/** Keys that are rejected in this process without a call to the store. */
export class BlockedKeys {
  readonly #until = new Map<string, number>()

  add(key: string, ms: number): void {
    const now = Date.now()
    this.#until.set(key, now + ms)
    if (this.#until.size < sweepSize) return
    for (const [one, until] of this.#until) if (until <= now) this.#until.delete(one)
  }

  /** Milliseconds until the block ends; 0 if the key is not blocked. */
  leftMs(key: string): number {
    return Math.max((this.#until.get(key) ?? 0) - Date.now(), 0)
  }

  delete(key: string): void {
    this.#until.delete(key)
  }

  clear(): void {
    this.#until.clear()
  }
}
