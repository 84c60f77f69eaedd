import type { SharedGenerations } from '../../core/bucket-store.js'

const firstRetryMs = 500
const maxRetryMs = 30_000

/**
 * Bucket resets for rules that were removed. The removal has already been reported as successful, and a new rule with the same
 * ID must not find the old buckets. If the store fails, the reset is kept and retried with backoff until it succeeds.
 */
export class PendingResets {
  readonly #generations: SharedGenerations
  readonly #onFailure: (error: unknown) => void
  readonly #onSuccess: () => void
  readonly #pending = new Map<string, Set<string>>()
  #retryMs = firstRetryMs
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(generations: SharedGenerations, onFailure: (error: unknown) => void, onSuccess: () => void) {
    this.#generations = generations
    this.#onFailure = onFailure
    this.#onSuccess = onSuccess
  }

  /** The number of rules whose reset is pending. */
  get count(): number {
    let count = 0
    for (const ruleIds of this.#pending.values()) count += ruleIds.size
    return count
  }

  /** Resets the buckets of rules now, or later if the store fails. Never rejects. */
  async resetRules(ruleSetId: string, ruleIds: readonly string[]): Promise<void> {
    try {
      await this.#generations.resetRules(ruleSetId, ruleIds)
    } catch (error) {
      const pending = this.#pending.get(ruleSetId) ?? new Set()
      for (const ruleId of ruleIds) pending.add(ruleId)
      this.#pending.set(ruleSetId, pending)
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
    this.#retryMs = Math.min(2 * this.#retryMs, maxRetryMs)
  }

  async #retry(): Promise<void> {
    const pending = [...this.#pending].map(([ruleSetId, ruleIds]) => [ruleSetId, [...ruleIds]] as const)
    try {
      for (const [ruleSetId, ruleIds] of pending) {
        await this.#generations.resetRules(ruleSetId, ruleIds)
        this.#completed(ruleSetId, ruleIds)
      }
      this.#retryMs = firstRetryMs
      this.#onSuccess()
    } catch (error) {
      this.#onFailure(error)
    }
    this.#timer = undefined
    if (this.#pending.size > 0) this.#retryLater()
  }

  #completed(ruleSetId: string, ruleIds: readonly string[]): void {
    const pending = this.#pending.get(ruleSetId)
    for (const ruleId of ruleIds) pending?.delete(ruleId)
    if (pending?.size === 0) this.#pending.delete(ruleSetId)
  }
}
