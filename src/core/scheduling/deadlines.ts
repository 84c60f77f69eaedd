import { performance } from 'node:perf_hooks'
import { type Clock, schedule, systemClock, ticks, ticksPerMs } from '../clock.js'

export interface Deadline {
  /** In loop time of its `Deadlines`. */
  readonly overAt: number
  readonly onOver: () => void
  /** False once it has ended or passed. */
  isPending: boolean
  before: Deadline | undefined
  after: Deadline | undefined
}

/** A stall of the event loop counts as one slice at most: a tenth of the timeout, and never more than this. */
const longestSliceMs = 25

/**
 * Deadlines of calls that share one timeout, so that they pass in the order in which they began and one timer serves all
 * of them. The timer stops within a slice when no call is pending.
 *
 * Time counts only while the event loop can run. The timer looks at the clock in short slices, and a slice that took longer
 * because the process was busy, paused or starved counts as one slice. A call that is due then gets one more turn of the
 * loop: a reply that already lies in the socket is read before the deadline passes.
 */
export class Deadlines {
  readonly #timeoutTicks: number
  readonly #sliceTicks: number
  readonly #clock: Clock
  #first: Deadline | undefined
  #last: Deadline | undefined
  /** Loop time at the last look at the clock. */
  #counted = 0
  #lookedAt = 0
  #isArmed = false

  constructor(timeoutMs: number, clock: Clock = systemClock) {
    this.#timeoutTicks = timeoutMs * ticksPerMs
    // Virtual time has no stalls.
    this.#sliceTicks =
      clock.schedule === undefined
        ? Math.min(Math.max(timeoutMs / 10, 1), longestSliceMs) * ticksPerMs
        : Number.POSITIVE_INFINITY
    this.#clock = clock
  }

  begin(onOver: () => void): Deadline {
    if (!this.#isArmed) this.#lookedAt = this.#now()
    const before = this.#last
    const overAt = this.#loopNow() + this.#timeoutTicks
    const deadline: Deadline = { overAt, onOver, isPending: true, before, after: undefined }
    if (before === undefined) this.#first = deadline
    else before.after = deadline
    this.#last = deadline
    if (!this.#isArmed) this.#arm()
    return deadline
  }

  /** Returns false if the deadline had passed before. */
  end(deadline: Deadline): boolean {
    if (!deadline.isPending) return false
    this.#remove(deadline)
    return true
  }

  #remove(deadline: Deadline): void {
    const { before, after } = deadline
    deadline.isPending = false
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
  }

  #look(): void {
    this.#isArmed = false
    this.#counted = this.#loopNow()
    this.#lookedAt = this.#now()
    if (this.#first === undefined) return
    const now = this.#counted
    if (this.#first.overAt <= now) setImmediate(() => this.#expire(now))
    this.#arm()
  }

  #expire(now: number): void {
    while (this.#first !== undefined && this.#first.overAt <= now) {
      const { onOver } = this.#first
      this.#remove(this.#first)
      onOver()
    }
  }

  /** The timer is not cancelled when the last call ends: the next one usually follows within a slice. */
  #arm(): void {
    const left = Math.max((this.#first as Deadline).overAt - this.#counted, ticksPerMs)
    this.#isArmed = true
    schedule(this.#clock, Math.min(left, this.#sliceTicks) / ticksPerMs, () => this.#look())
  }

  #loopNow(): number {
    return this.#counted + Math.min(this.#now() - this.#lookedAt, this.#sliceTicks)
  }

  /** Where real timers are used, their time: a wall clock may step back. */
  #now(): number {
    return this.#clock.schedule === undefined ? Math.round(performance.now() * ticksPerMs) : ticks(this.#clock)
  }
}
