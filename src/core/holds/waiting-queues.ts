import { type Clock, schedule } from '../clock.js'
import type { Decision } from '../decision.js'
import type { WaitingRoom } from '../waiting/waiting-room.js'

/** How often the first request in a queue asks a shared store, in milliseconds. Other processes may release a hold at any time. */
const pollMs = 20
/** How often the others ask a shared store, which keeps the order of arrival of all processes. It drops requests that have not asked for a second. */
const renewMs = 300

export interface QueuedCheck {
  /** The bucket whose queue the request joins. */
  readonly bucket: string
  /** Order of arrival. */
  readonly number: number
  readonly maxWaitMs: number
  readonly signal?: AbortSignal | undefined
  /** Decides again. */
  readonly attempt: () => Decision | Promise<Decision>
  /** True if the rejection ends as soon as a hold is released. */
  readonly isWaiting: (decision: Decision) => boolean
  /** Undoes a decision that was made after the wait had ended. */
  readonly abandon: (decision: Decision) => void
  /** Called if the wait ends without a grant of the shared store. */
  readonly left: () => void
}

interface Waiter extends QueuedCheck {
  readonly settle: (decision: Decision) => void
  readonly fail: (error: unknown) => void
  readonly leave: () => void
}

interface Queue {
  readonly waiters: Waiter[]
  isAsking: boolean
  /** True if a hold was released while the first request was deciding. */
  isStale: boolean
  cancelTimer: () => void
  cancelRenewal: () => void
}

const newQueue = (): Queue => ({
  waiters: [],
  isAsking: false,
  isStale: false,
  cancelTimer: () => {},
  cancelRenewal: () => {},
})

/**
 * Requests that wait for a hold to be released, in order of arrival per bucket. The first one of each queue asks the store: after
 * a release in this process at once, and otherwise every 20 ms, or in a memory store when the next hold expires. A shared store
 * keeps the order of arrival of all processes, so the others ask it too, but only often enough to keep their place.
 */
export class HoldQueues {
  readonly #queues = new Map<string, Queue>()
  readonly #clock: Clock
  readonly #room: WaitingRoom
  readonly #isShared: boolean
  #isClosed = false

  constructor(clock: Clock, room: WaitingRoom, isShared: boolean) {
    this.#clock = clock
    this.#room = room
    this.#isShared = isShared
  }

  /** The first of these buckets that requests wait for. */
  busy(buckets: readonly string[]): string | undefined {
    return this.#queues.size === 0 ? undefined : buckets.find((bucket) => this.#queues.has(bucket))
  }

  /**
   * Waits until the request is allowed, is rejected for another reason, or its maximum wait has passed. Returns undefined if the
   * waiting room is full. `first` is the decision that made the request wait, if there is one. Rejects if the signal aborts.
   */
  wait(check: QueuedCheck, first?: Decision): Promise<Decision> | undefined {
    if (this.#isClosed || this.#room.isFull) return undefined
    this.#room.occupy()
    return new Promise((resolve, reject) => {
      const { bucket, signal, maxWaitMs } = check
      const queue = this.#queues.get(bucket) ?? newQueue()
      this.#queues.set(bucket, queue)
      const isQueued = (): boolean => queue.waiters.includes(waiter)
      const end = (): void => this.#end(queue, waiter)
      const abort = (): void => {
        end()
        check.left()
        reject(signal?.reason)
      }
      const waiter: Waiter = {
        ...check,
        settle(decision) {
          if (!isQueued()) {
            check.abandon(decision)
            return
          }
          end()
          // A degraded decision was made without the shared store, in which the request still waits.
          if (!decision.allowed || decision.degraded) check.left()
          resolve(decision)
        },
        fail(error) {
          // Another decision may have been allowed, and leaving would release its hold.
          if (!isQueued()) return
          end()
          check.left()
          reject(error)
        },
        leave: () => {
          cancelDeadline()
          signal?.removeEventListener('abort', abort)
        },
      }
      const cancelDeadline = schedule(this.#clock, maxWaitMs, () => void this.#last(waiter))
      signal?.addEventListener('abort', abort, { once: true })
      // First decisions may complete in another order than they were asked for.
      let at = queue.waiters.length
      while (at > 0 && (queue.waiters[at - 1] as Waiter).number > check.number) at--
      queue.waiters.splice(at, 0, waiter)
      if (signal?.aborted) abort()
      else if (queue.waiters.length === 1) this.#armAfter(queue, first)
      else if (this.#isShared && queue.waiters.length === 2) this.#renewLater(queue)
    })
  }

  /** Asks again for the first request of each bucket, because a hold was released. */
  released(buckets: readonly string[]): void {
    if (this.#queues.size === 0) return
    for (const bucket of buckets) {
      const queue = this.#queues.get(bucket)
      if (queue !== undefined) this.#ask(queue)
    }
  }

  /** Rejects all waiting requests with a last decision. */
  close(): void {
    this.#isClosed = true
    for (const { waiters } of [...this.#queues.values()]) for (const waiter of [...waiters]) void this.#last(waiter)
  }

  /** Ends a wait with one more decision, which is usually a rejection. */
  async #last(waiter: Waiter): Promise<void> {
    try {
      waiter.settle(await waiter.attempt())
    } catch (error) {
      waiter.fail(error)
    }
  }

  #end(queue: Queue, waiter: Waiter): void {
    const index = queue.waiters.indexOf(waiter)
    if (index < 0) return
    waiter.leave()
    this.#room.vacate()
    queue.waiters.splice(index, 1)
    if (queue.waiters.length === 0) {
      queue.cancelTimer()
      queue.cancelRenewal()
      this.#queues.delete(waiter.bucket)
    } else if (index === 0) this.#ask(queue)
  }

  #ask(queue: Queue): void {
    queue.cancelTimer()
    if (queue.isAsking) queue.isStale = true
    else void this.#askFirst(queue)
  }

  async #askFirst(queue: Queue): Promise<void> {
    const [waiter] = queue.waiters
    if (waiter === undefined) return
    queue.isAsking = true
    queue.isStale = false
    let decision: Decision
    try {
      decision = await waiter.attempt()
    } catch (error) {
      queue.isAsking = false
      waiter.fail(error)
      return
    }
    queue.isAsking = false
    if (!waiter.isWaiting(decision)) waiter.settle(decision)
    else if (queue.isStale) this.#ask(queue)
    else this.#armAfter(queue, decision)
  }

  #renewLater(queue: Queue): void {
    queue.cancelRenewal()
    queue.cancelRenewal = schedule(this.#clock, renewMs, () => {
      for (const waiter of queue.waiters.slice(1)) void this.#renew(waiter)
      if (queue.waiters.length > 1) this.#renewLater(queue)
    })
  }

  /** Keeps the place of a request. It may be allowed, if the requests before it have left in the meantime. */
  async #renew(waiter: Waiter): Promise<void> {
    try {
      const decision = await waiter.attempt()
      if (!waiter.isWaiting(decision)) waiter.settle(decision)
    } catch (error) {
      waiter.fail(error)
    }
  }

  /** Asks again when the next hold expires at the latest. */
  #armAfter(queue: Queue, decision: Decision | undefined): void {
    queue.cancelTimer()
    const expiryMs = decision === undefined ? 0 : (decision.retryAfterMs ?? pollMs)
    const ms = this.#isShared ? Math.min(pollMs, expiryMs) : expiryMs
    queue.cancelTimer = schedule(this.#clock, Math.max(1, ms), () => this.#ask(queue))
  }
}
