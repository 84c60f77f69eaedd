import { type Clock, ticks, ticksPerMs } from '../clock.js'
import type { TimedSlot } from './slot.js'

const firstRetryMs = 25
const longestRetryMs = 500
/** How long a refund is kept whose slot was usable at once: it did not delay other requests, so it has no end of its own. */
const immediateSlotMs = 60_000
const mostKept = 10_000

/**
 * Gives slots back to the store. A refund that the store has certainly not executed is kept and repeated until it succeeds
 * or the time of its slot has come. A refund whose reply was lost is not repeated: executed twice, it would admit too much.
 */
export class OwedRefunds {
  readonly #clock: Clock
  readonly #vacate: (slots: readonly TimedSlot[]) => void
  #kept: TimedSlot[] = []
  readonly #keptBuckets = new Set<string>()
  /** How many refunds of a bucket are being repeated. */
  readonly #repeated = new Map<string, number>()
  #isRetrying = false
  #retryMs = firstRetryMs
  #triedAt = Number.NEGATIVE_INFINITY
  #cancelTimer: (() => void) | undefined
  #isClosed = false

  /** `vacate` is called with the slots to repeat: requests that have arrived meanwhile may move up to them. */
  constructor(clock: Clock, vacate: (slots: readonly TimedSlot[]) => void) {
    this.#clock = clock
    this.#vacate = vacate
  }

  giveBack(timed: TimedSlot): void {
    const { bucket } = timed.slot
    if (this.#isRetrying) void this.#repeat(timed)
    // The store takes slots back from the end of the queue, so this one waits for those behind it.
    else if (this.#repeated.has(bucket) || this.#keptBuckets.has(bucket)) this.#keep(timed)
    else void this.#send(timed)
  }

  /** Repeats what is kept, but not in quick succession: on a cluster, one node may reply while another is down. */
  retry(): void {
    if (this.#kept.length === 0 || Math.abs(ticks(this.#clock) - this.#triedAt) < firstRetryMs * ticksPerMs) return
    this.#retryNow()
  }

  /** Tries once more, and keeps nothing any longer. */
  close(): void {
    this.#isClosed = true
    this.#cancelTimer?.()
    this.#retryNow()
  }

  #retryNow(): void {
    const now = ticks(this.#clock)
    const kept = this.#kept.filter((timed) => expiresAt(timed) > now)
    this.#kept = []
    this.#keptBuckets.clear()
    this.#triedAt = now
    this.#isRetrying = true
    this.#vacate(kept)
    this.#isRetrying = false
  }

  async #repeat(timed: TimedSlot): Promise<void> {
    const { bucket } = timed.slot
    this.#repeated.set(bucket, (this.#repeated.get(bucket) ?? 0) + 1)
    const isDone = await this.#send(timed)
    const left = (this.#repeated.get(bucket) as number) - 1
    if (left > 0) this.#repeated.set(bucket, left)
    else this.#repeated.delete(bucket)
    if (!isDone) return
    this.#retryMs = firstRetryMs
    if (left === 0 && this.#kept.length > 0) this.#retryNow()
  }

  /** Resolves to false if the refund is kept. */
  async #send(timed: TimedSlot): Promise<boolean> {
    const isDone = (await timed.slot.giveBack?.()) ?? true
    if (!isDone) this.#keep(timed)
    return isDone
  }

  #keep(timed: TimedSlot): void {
    if (this.#isClosed) return
    if (this.#kept.length < mostKept) {
      this.#kept.push(timed)
      this.#keptBuckets.add(timed.slot.bucket)
    }
    if (this.#cancelTimer === undefined) this.#arm()
  }

  #onTimer(): void {
    this.#cancelTimer = undefined
    this.#retryMs = Math.min(2 * this.#retryMs, longestRetryMs)
    this.#retryNow()
  }

  #arm(): void {
    const wake = (): void => this.#onTimer()
    if (this.#clock.schedule !== undefined) {
      this.#cancelTimer = this.#clock.schedule(this.#retryMs, wake)
      return
    }
    // Does not keep the process alive.
    const timer = setTimeout(wake, this.#retryMs).unref()
    this.#cancelTimer = () => clearTimeout(timer)
  }
}

const expiresAt = ({ slot, dueAt }: TimedSlot): number =>
  slot.delay > 0 ? dueAt : dueAt + immediateSlotMs * ticksPerMs
