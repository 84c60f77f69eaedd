import { ClientShares } from './client-shares.js'
import type { Exchange, UpstreamTimeouts } from './exchange.js'
import type { Origin } from './origin.js'
import { Slot } from './slot.js'
import { Transfer } from './transfer.js'
import type { UploadLimits } from './upload-rate.js'
import { WaitingQueue } from './waiting-queue.js'

export interface PoolLimits extends UpstreamTimeouts, UploadLimits {
  /** Connections to one upstream, tunnels included; further requests wait for one of them. */
  readonly maxConnections: number
  /** The part of them that one client address may occupy: above 0, at most 1. */
  readonly clientShare: number
}

/** The connections to one upstream. The connection used last is used next, so that surplus connections time out. */
export class UpstreamPool {
  readonly #origin: Origin
  readonly #limits: PoolLimits
  readonly #slots = new Set<Slot>()
  /** Free slots that had a connection when they were released. */
  readonly #idle: Slot[] = []
  /** Free slots without a connection. */
  readonly #spare: Slot[] = []
  readonly #waiting = new WaitingQueue<Transfer>()
  readonly #shares: ClientShares
  #isServingScheduled = false
  #isRetired = false

  constructor(origin: Origin, limits: PoolLimits) {
    this.#origin = origin
    this.#limits = limits
    this.#shares = new ClientShares(limits.maxConnections, limits.clientShare)
  }

  get isRetired(): boolean {
    return this.#isRetired
  }

  get isEmpty(): boolean {
    return this.#slots.size === 0 && this.#waiting.size + this.#shares.parked === 0
  }

  request(exchange: Exchange): Transfer {
    const transfer = new Transfer(exchange, this.#leaveQueue)
    if (this.#shares.enter(transfer)) this.#start(transfer)
    return transfer
  }

  #start(transfer: Transfer): void {
    const slot = this.#waiting.size === 0 ? this.#freeSlot() : undefined
    if (slot === undefined) this.#waiting.push(transfer)
    else slot.begin(transfer)
  }

  checkTime(now: number): void {
    for (const slot of this.#slots) slot.transfer?.checkTime(now, this.#limits)
    this.#waiting.visit((transfer) => transfer.checkTime(now, this.#limits))
    this.#shares.visitParked((transfer) => transfer.checkTime(now, this.#limits))
  }

  /** Finishes what is in flight, and keeps no connection after that. */
  retire(): void {
    this.#isRetired = true
    for (const slot of [...this.#idle.splice(0), ...this.#spare.splice(0)]) this.#discard(slot)
  }

  /** A route leads here again. */
  restore(): void {
    this.#isRetired = false
  }

  onRelease(slot: Slot, transfer: Transfer): void {
    this.#leaveShare(transfer)
    if (this.#isRetired && this.#waiting.size === 0) this.#discard(slot)
    else if (slot.isConnected) this.#idle.push(slot)
    else this.#spare.push(slot)
    if (this.#waiting.size === 0 || this.#isServingScheduled) return
    // Later: a slot is released from within the parser of undici, which must not be entered again.
    this.#isServingScheduled = true
    queueMicrotask(this.#serveWaiting)
  }

  readonly #leaveQueue = (transfer: Transfer): void => {
    if (transfer.queueLinks === undefined) return
    if (!transfer.isParked) this.#waiting.remove(transfer)
    this.#leaveShare(transfer)
  }

  /** The next request of the same client queues up for a connection. */
  #leaveShare(transfer: Transfer): void {
    const next = this.#shares.leave(transfer)
    if (next !== undefined) this.#waiting.push(next)
  }

  readonly #serveWaiting = (): void => {
    this.#isServingScheduled = false
    while (this.#waiting.size > 0) {
      const slot = this.#freeSlot()
      if (slot === undefined) return
      slot.begin(this.#waiting.shift() as Transfer)
    }
  }

  #freeSlot(): Slot | undefined {
    for (let slot = this.#idle.pop(); slot !== undefined; slot = this.#idle.pop()) {
      if (slot.isConnected) return slot
      this.#spare.push(slot)
    }
    const spare = this.#spare.pop()
    if (spare !== undefined || this.#slots.size >= this.#limits.maxConnections) return spare
    const slot = new Slot(this.#origin, this.#limits.keepAliveMs, this)
    this.#slots.add(slot)
    return slot
  }

  #discard(slot: Slot): void {
    this.#slots.delete(slot)
    slot.destroy()
  }
}
