import { performance } from 'node:perf_hooks'
import { type Clock, schedule, ticks, ticksPerMs } from './clock.js'

export interface Deadline {
  readonly overAt: number
  readonly onOver: () => void
  /** False once it has been ended, or has passed. */
  isWaiting: boolean
  before: Deadline | undefined
  after: Deadline | undefined
}

/**
 * Deadlines of calls that all have the same time, so that they pass in the order in which they began, and one timer, for
 * whoever began first, serves all of them. There is no timer while nobody waits.
 */
export class Deadlines {
  readonly #timeoutMs: number
  readonly #clock: Clock
  #first: Deadline | undefined
  #last: Deadline | undefined
  #cancelTimer: (() => void) | undefined

  constructor(timeoutMs: number, clock: Clock) {
    this.#timeoutMs = timeoutMs
    this.#clock = clock
  }

  begin(onOver: () => void): Deadline {
    const before = this.#last
    const overAt = this.#now() + this.#timeoutMs * ticksPerMs
    const deadline: Deadline = { overAt, onOver, isWaiting: true, before, after: undefined }
    if (before === undefined) this.#first = deadline
    else before.after = deadline
    this.#last = deadline
    if (this.#cancelTimer === undefined) this.#arm(this.#timeoutMs)
    return deadline
  }

  /** Whether it had not passed. */
  end(deadline: Deadline): boolean {
    if (!deadline.isWaiting) return false
    this.#remove(deadline)
    if (this.#first === undefined) this.#disarm()
    return true
  }

  #remove(deadline: Deadline): void {
    const { before, after } = deadline
    deadline.isWaiting = false
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
  }

  #expire(): void {
    this.#cancelTimer = undefined
    const now = this.#now()
    while (this.#first !== undefined && this.#first.overAt <= now) {
      const { onOver } = this.#first
      this.#remove(this.#first)
      onOver()
    }
    if (this.#first !== undefined && this.#cancelTimer === undefined) this.#arm((this.#first.overAt - now) / ticksPerMs)
  }

  #arm(ms: number): void {
    this.#cancelTimer = schedule(this.#clock, ms, () => this.#expire())
  }

  #disarm(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  /** Where real timers are used, what passes for them, and not what a wall clock says, which may step back. */
  #now(): number {
    return this.#clock.schedule === undefined ? Math.round(performance.now() * ticksPerMs) : ticks(this.#clock)
  }
}
