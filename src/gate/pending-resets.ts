import type { SharedResets } from '../core/bucket-store.js'

const firstRetryMs = 500
const longestRetryMs = 30_000

/**
 * Resets that have to be made for an edit that is made already: who removed a rule was told so, and one that comes back under
 * its name must not find the buckets of the old one. What the store does not take now is told, and tried again until it does.
 */
export class OwedResets {
  readonly #resets: SharedResets
  readonly #onFailure: (error: unknown) => void
  readonly #onSuccess: () => void
  readonly #owed = new Map<string, Set<string>>()
  #retryMs = firstRetryMs
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(resets: SharedResets, onFailure: (error: unknown) => void, onSuccess: () => void) {
    this.#resets = resets
    this.#onFailure = onFailure
    this.#onSuccess = onSuccess
  }

  /** How many rules are still to be reset. */
  get count(): number {
    let count = 0
    for (const ruleIds of this.#owed.values()) count += ruleIds.size
    return count
  }

  /** Never rejects. */
  async startAfresh(ruleSetId: string, ruleIds: readonly string[]): Promise<void> {
    try {
      await this.#resets.startAfresh(ruleSetId, ruleIds)
    } catch (error) {
      const owed = this.#owed.get(ruleSetId) ?? new Set()
      for (const ruleId of ruleIds) owed.add(ruleId)
      this.#owed.set(ruleSetId, owed)
      this.#onFailure(error)
      this.#retryLater()
    }
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #retryLater(): void {
    if (this.#timer !== undefined || this.#isClosed) return
    this.#timer = setTimeout(() => void this.#retry(), this.#retryMs).unref()
    this.#retryMs = Math.min(2 * this.#retryMs, longestRetryMs)
  }

  async #retry(): Promise<void> {
    const owed = [...this.#owed].map(([ruleSetId, ruleIds]) => [ruleSetId, [...ruleIds]] as const)
    try {
      for (const [ruleSetId, ruleIds] of owed) {
        await this.#resets.startAfresh(ruleSetId, ruleIds)
        this.#paid(ruleSetId, ruleIds)
      }
      this.#retryMs = firstRetryMs
      this.#onSuccess()
    } catch (error) {
      this.#onFailure(error)
    }
    this.#timer = undefined
    if (this.#owed.size > 0) this.#retryLater()
  }

  #paid(ruleSetId: string, ruleIds: readonly string[]): void {
    const owed = this.#owed.get(ruleSetId)
    for (const ruleId of ruleIds) owed?.delete(ruleId)
    if (owed?.size === 0) this.#owed.delete(ruleSetId)
  }
}
