import { type Clock, ticks, ticksPerMs } from '../clock.js'
import type { TimedSlot } from './slot.js'

const firstRetryMs = 25
const maxRetryMs = 500
/** How long a refund of a slot without delay is kept. Such a slot delays no other request, so it has no expiry of its own. */
const immediateSlotMs = 60_000
const maxKept = 10_000

/**
 * Refunds slots to the store. A refund that the store certainly has not executed is kept and retried until it succeeds or the
 * slot is due. A refund whose reply was lost is not retried, because executing it twice would allow too many requests.
 */
export class PendingRefunds {
  readonly #clock: Clock
  readonly #vacate: (slots: readonly TimedSlot[]) => void
  /** True if a failed refund waits to be retried. A field, because it is read after every reply of the store. */
  hasKept = false
  #kept: TimedSlot[] = []
  readonly #keptBuckets = new Set<string>()
  /** The number of retries in flight, by bucket. */
  readonly #retries = new Map<string, number>()
  #isRetrying = false
  #retryMs = firstRetryMs
  #triedAt = Number.NEGATIVE_INFINITY
  #cancelTimer: (() => void) | undefined
  #isClosed = false

  /** `vacate` is called with the slots to retry, because requests that arrived after the first attempt may move up to them. */
  constructor(clock: Clock, vacate: (slots: readonly TimedSlot[]) => void) {
    this.#clock = clock
    this.#vacate = vacate
  }

  giveBack(timed: TimedSlot): void {
    const { bucket } = timed.slot
    if (this.#isRetrying) void this.#retry(timed)
    // The store takes slots back from the end of the queue, so this slot waits for the pending refunds of later slots.
    else if (this.#retries.has(bucket) || this.#keptBuckets.has(bucket)) this.#keep(timed)
    else void this.#send(timed)
  }

  /** Retries kept refunds, but not in quick succession: in a cluster, one node may reply while another is down. */
  retry(): void {
    if (!this.hasKept || Math.abs(ticks(this.#clock) - this.#triedAt) < firstRetryMs * ticksPerMs) return
    this.#retryNow()
  }

  /** Retries once more and keeps no refunds from then on. */
  close(): void {
    this.#isClosed = true
    this.#cancelTimer?.()
    this.#retryNow()
  }

  #retryNow(): void {
    const now = ticks(this.#clock)
    const kept = this.#kept.filter((timed) => expiresAt(timed) > now)
    this.#kept = []
    this.hasKept = false
    this.#keptBuckets.clear()
    this.#triedAt = now
    this.#isRetrying = true
    this.#vacate(kept)
    this.#isRetrying = false
  }

  async #retry(timed: TimedSlot): Promise<void> {
    const { bucket } = timed.slot
    this.#retries.set(bucket, (this.#retries.get(bucket) ?? 0) + 1)
    const isDone = await this.#send(timed)
    const left = (this.#retries.get(bucket) as number) - 1
    if (left > 0) this.#retries.set(bucket, left)
    else this.#retries.delete(bucket)
    if (!isDone) return
    this.#retryMs = firstRetryMs
    if (left === 0 && this.hasKept) this.#retryNow()
  }

  /** Resolves to false if the refund is kept. */
  async #send(timed: TimedSlot): Promise<boolean> {
    const isDone = (await timed.slot.giveBack?.()) ?? true
    if (!isDone) this.#keep(timed)
    return isDone
  }

  #keep(timed: TimedSlot): void {
    if (this.#isClosed) return
    if (this.#kept.length < maxKept) {
      this.#kept.push(timed)
      this.hasKept = true
      this.#keptBuckets.add(timed.slot.bucket)
    }
    if (this.#cancelTimer === undefined) this.#arm()
  }

  #onTimer(): void {
    this.#cancelTimer = undefined
    this.#retryMs = Math.min(2 * this.#retryMs, maxRetryMs)
    this.#retryNow()
  }

  #arm(): void {
    const wake = (): void => this.#onTimer()
    if (this.#clock.schedule !== undefined) {
      this.#cancelTimer = this.#clock.schedule(this.#retryMs, wake)
      return
    }
    // The timer must not keep the process alive.
    const timer = setTimeout(wake, this.#retryMs).unref()
    this.#cancelTimer = () => clearTimeout(timer)
  }
}

const expiresAt = ({ slot, dueAt }: TimedSlot): number =>
  slot.delay > 0 ? dueAt : dueAt + immediateSlotMs * ticksPerMs
