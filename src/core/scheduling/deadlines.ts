import { type Clock, schedule, systemClock, ticks, ticksPerMs } from '../clock.js'
import { nextTurn } from './next-turn.js'

// Captured, because fake timers of tests replace the global.
const { performance } = globalThis

export interface Deadline {
  /** In loop time of its `Deadlines`. */
  readonly expiresAt: number
  readonly onExpire: () => void
  /** False once the call has ended or the deadline has expired. */
  isPending: boolean
  previous: Deadline | undefined
  next: Deadline | undefined
}

/** A stall of the event loop counts as at most one slice: a tenth of the timeout, and never more than this. */
const maxSliceMs = 25

/**
 * Deadlines of calls that share one timeout. They expire in the order in which they started, so one timer serves all of
 * them. The timer stops within one slice after the last pending call.
 *
 * Deadlines count only the time during which the event loop runs ("loop time"). The timer reads the clock in short slices,
 * and a slice that took longer because the process was busy, paused or starved counts as one slice. An expired call gets one
 * more turn of the event loop, so that a reply that is already in the socket buffer is read first.
 */
export class Deadlines {
  readonly #timeoutTicks: number
  readonly #sliceTicks: number
  readonly #clock: Clock
  #first: Deadline | undefined
  #last: Deadline | undefined
  /** Loop time at the last reading of the clock. */
  #loopTime = 0
  #readAt = 0
  #isArmed = false

  constructor(timeoutMs: number, clock: Clock = systemClock) {
    this.#timeoutTicks = timeoutMs * ticksPerMs
    // Virtual time has no stalls.
    this.#sliceTicks =
      clock.schedule === undefined
        ? Math.min(Math.max(timeoutMs / 10, 1), maxSliceMs) * ticksPerMs
        : Number.POSITIVE_INFINITY
    this.#clock = clock
  }

  begin(onExpire: () => void): Deadline {
    if (!this.#isArmed) this.#readAt = this.#now()
    const previous = this.#last
    const expiresAt = this.#loopNow() + this.#timeoutTicks
    const deadline: Deadline = { expiresAt, onExpire, isPending: true, previous, next: undefined }
    if (previous === undefined) this.#first = deadline
    else previous.next = deadline
    this.#last = deadline
    if (!this.#isArmed) this.#arm()
    return deadline
  }

  /** Returns false if the deadline has already expired. */
  end(deadline: Deadline): boolean {
    if (!deadline.isPending) return false
    const { previous, next } = deadline
    deadline.isPending = false
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    return true
  }

  #expire(now: number): void {
    while (this.#first !== undefined && this.#first.expiresAt <= now) {
      const { onExpire } = this.#first
      this.end(this.#first)
      onExpire()
    }
  }

  /** The timer is not cancelled when the last call ends, because the next call usually starts within a slice. */
  #arm(): void {
    const left = Math.max((this.#first as Deadline).expiresAt - this.#loopTime, ticksPerMs)
    this.#isArmed = true
    schedule(this.#clock, Math.min(left, this.#sliceTicks) / ticksPerMs, () => {
      this.#isArmed = false
      this.#loopTime = this.#loopNow()
      this.#readAt = this.#now()
      if (this.#first === undefined) return
      const now = this.#loopTime
      if (this.#first.expiresAt <= now) nextTurn(() => this.#expire(now))
      this.#arm()
    })
  }

  #loopNow(): number {
    return this.#loopTime + Math.min(this.#now() - this.#readAt, this.#sliceTicks)
  }

  /** Real timers need a monotonic clock, because the wall clock can step back. */
  #now(): number {
    return this.#clock.schedule === undefined ? Math.round(performance.now() * ticksPerMs) : ticks(this.#clock)
  }
}
