import { ticksPerMs } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { decodeHold } from '../core/holds/hold-token.js'
import { nextTurn } from '../core/scheduling/next-turn.js'
import { EventHeap } from './event-heap.js'
import type { VirtualClock } from './virtual-clock.js'

/** Releases and renews the slots of CONCURRENCY rules. */
export interface SimulatedHolds {
  readonly clock: VirtualClock
  release?(holdId: string): Promise<boolean>
  renew?(holdId: string): Promise<boolean>
}

/** The end of a request that occupies a slot, or the time of its next renewal. */
interface HoldEvent {
  readonly at: number
  readonly holdId: string
  readonly endsAt: number
  /** Ticks between two renewals. */
  readonly every: number
}

/** As in production, where a hold is renewed three times in its `maxHold`. */
const renewalsPerHold = 3

/**
 * The requests of a simulation that occupy slots of CONCURRENCY rules or wait for one. Moves the virtual clock: slots are
 * released and renewed at their exact times, and requests that wait for a slot are decided between two arrivals.
 */
export class HeldRequests {
  readonly #holds: SimulatedHolds
  readonly #events = new EventHeap<HoldEvent>()
  #waiting = 0
  #failure: { readonly error: unknown } | undefined

  constructor(holds: SimulatedHolds) {
    this.#holds = holds
  }

  /** The number of requests whose decision is pending. */
  get waiting(): number {
    return this.#waiting
  }

  /** A request was decided now, and ends `duration` ticks after its release. */
  start({ holdId, delayMs }: Decision, duration: number): void {
    if (holdId === undefined) return
    const now = this.#now
    const endsAt = now + Math.round(delayMs * ticksPerMs) + duration
    const every = Math.max(1, Math.floor((decodeHold(holdId).maxHoldMs * ticksPerMs) / renewalsPerHold))
    this.#events.add({ at: Math.min(endsAt, now + every), holdId, endsAt, every })
  }

  /** Waits for a decision for as long as that needs no time of the virtual clock. `record` is called once it is made. */
  async wait(
    deciding: Promise<Decision>,
    arrivedAt: number,
    record: (decision: Decision, waited: number) => void,
  ): Promise<void> {
    this.#waiting += 1
    deciding.then(
      (decision) => {
        this.#waiting -= 1
        record(decision, this.#now - arrivedAt)
      },
      (error: unknown) => {
        this.#waiting -= 1
        this.#fail(error)
      },
    )
    await this.#settle()
  }

  /** Advances the clock while no request waits. */
  moveTo(tick: number): void {
    const { clock } = this.#holds
    for (let next = this.#events.takeUntil(tick); next !== undefined; next = this.#events.takeUntil(tick)) {
      clock.moveTo(next.at)
      this.#handle(next)
    }
    clock.moveTo(tick)
  }

  /** Advances the clock step by step while requests wait, because each released slot may go to one of them. */
  async advanceTo(tick: number): Promise<void> {
    while (this.#waiting > 0) {
      const next = this.#nextAt
      if (next > tick) break
      this.moveTo(next)
      await this.#settle()
    }
    this.moveTo(tick)
  }

  /** Advances the clock until no request waits. */
  async finish(): Promise<void> {
    while (this.#waiting > 0) {
      if (this.#nextAt === Number.POSITIVE_INFINITY)
        throw new Error('A simulated request waits for a decision forever.')
      await this.advanceTo(this.#nextAt)
    }
    if (this.#failure !== undefined) throw this.#failure.error
  }

  get #now(): number {
    return Math.round(this.#holds.clock.now() * ticksPerMs)
  }

  /** The tick of the next release, renewal or timer. */
  get #nextAt(): number {
    const { first } = this.#events
    return Math.min(first?.at ?? Number.POSITIVE_INFINITY, this.#holds.clock.nextAt ?? Number.POSITIVE_INFINITY)
  }

  #handle(event: HoldEvent): void {
    const { at, holdId, endsAt, every } = event
    const call = at >= endsAt ? this.#holds.release?.(holdId) : this.#holds.renew?.(holdId)
    call?.catch((error: unknown) => this.#fail(error))
    if (at < endsAt) this.#events.add({ ...event, at: Math.min(endsAt, at + every) })
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
  }

  /** Runs what was started and needs no time. */
  async #settle(): Promise<void> {
    await new Promise<void>(nextTurn)
    if (this.#failure !== undefined) throw this.#failure.error
  }
}
