import { ClientShares } from './client-shares.js'
import type { Exchange, RouteTimeouts, UpstreamTimeouts } from './exchange.js'
import { type Origin, originKey } from './origin.js'
import { Slot } from './slot.js'
import type { UploadLimits } from './upload-rate.js'
import { UpstreamRequest } from './upstream-request.js'
import { WaitingQueue } from './waiting-queue.js'

export interface PoolLimits extends UpstreamTimeouts, UploadLimits {
  /** Maximum number of connections to one upstream, tunnels included. Further requests wait for one of them. */
  readonly maxConnections: number
  /** The fraction of them that one client address may occupy: above 0, at most 1. */
  readonly clientShare: number
}

/** The connections to one upstream. The most recently used one is reused first, so that surplus connections time out. */
export class UpstreamPool {
  readonly #origin: Origin
  readonly #limits: PoolLimits
  readonly #slots = new Set<Slot>()
  /** Free slots that had a connection when they were released. */
  readonly #idle: Slot[] = []
  /** Free slots without a connection. */
  readonly #spare: Slot[] = []
  readonly #waiting = new WaitingQueue<UpstreamRequest>()
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

  request(exchange: Exchange): UpstreamRequest {
    const request = new UpstreamRequest(exchange, this.#leaveQueue)
    if (this.#shares.enter(request)) this.#start(request)
    return request
  }

  #start(request: UpstreamRequest): void {
    const slot = this.#waiting.size === 0 ? this.#freeSlot() : undefined
    if (slot === undefined) this.#waiting.push(request)
    else slot.begin(request)
  }

  checkTime(now: number): void {
    for (const slot of this.#slots) slot.request?.checkTime(now, this.#limits)
    const check = (request: UpstreamRequest): void => request.checkTime(now, this.#limits)
    this.#waiting.forEach(check)
    this.#shares.forEachParked(check)
  }

  /** Closes each connection once its request in flight ends. */
  retire(): void {
    this.#isRetired = true
    for (const slot of [...this.#idle.splice(0), ...this.#spare.splice(0)]) this.#discard(slot)
  }

  /** Undoes `retire`, because a route uses the upstream again. */
  restore(): void {
    this.#isRetired = false
  }

  onRelease(slot: Slot, request: UpstreamRequest): void {
    this.#leaveShare(request)
    if (this.#isRetired && this.#waiting.size === 0) this.#discard(slot)
    else if (slot.isConnected) this.#idle.push(slot)
    else this.#spare.push(slot)
    if (this.#waiting.size === 0 || this.#isServingScheduled) return
    // Deferred: slots are released inside the parser of undici, which is not reentrant.
    this.#isServingScheduled = true
    queueMicrotask(this.#serveWaiting)
  }

  readonly #leaveQueue = (request: UpstreamRequest): void => {
    if (request.queueLinks === undefined) return
    if (!request.isParked) this.#waiting.remove(request)
    this.#leaveShare(request)
  }

  /** Queues the next parked request of the same client. */
  #leaveShare(request: UpstreamRequest): void {
    const next = this.#shares.leave(request)
    if (next !== undefined) this.#waiting.push(next)
  }

  readonly #serveWaiting = (): void => {
    this.#isServingScheduled = false
    while (this.#waiting.size > 0) {
      const slot = this.#freeSlot()
      if (slot === undefined) return
      slot.begin(this.#waiting.shift() as UpstreamRequest)
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

/** The pools of all upstreams. One timer checks all timeouts, which costs less than a timer per request. */
export class UpstreamPools {
  readonly #limits: PoolLimits
  readonly #pools = new Map<string, UpstreamPool>()
  #timer: NodeJS.Timeout | undefined

  constructor(limits: PoolLimits) {
    this.#limits = limits
  }

  /** Sets the check interval, short enough for these timeouts too. */
  setCheckInterval(timeouts: readonly RouteTimeouts[]): void {
    const all = [this.#limits, ...timeouts.map((own) => ({ ...this.#limits, ...own }))]
    clearInterval(this.#timer)
    this.#timer = setInterval(() => this.#checkTime(), Math.min(...all.map(checkIntervalMs))).unref()
  }

  poolFor(origin: Origin): UpstreamPool {
    const key = originKey(origin)
    const known = this.#pools.get(key)
    if (known !== undefined) return known
    const pool = new UpstreamPool(origin, this.#limits)
    this.#pools.set(key, pool)
    return pool
  }

  /** Retires the pools of all other upstreams. */
  keepOnly(origins: readonly Origin[]): void {
    const keys = new Set(origins.map(originKey))
    for (const [key, pool] of this.#pools) {
      if (keys.has(key)) pool.restore()
      else pool.retire()
    }
  }

  close(): void {
    this.keepOnly([])
    clearInterval(this.#timer)
  }

  #checkTime(): void {
    const now = performance.now()
    for (const [key, pool] of this.#pools) {
      pool.checkTime(now)
      if (pool.isRetired && pool.isEmpty) this.#pools.delete(key)
    }
  }
}

/** A quarter of the shortest timeout, from 20 ms to 1 s. */
function checkIntervalMs(limits: PoolLimits): number {
  const { connectTimeoutMs, responseTimeoutMs, idleTimeoutMs, keepAliveMs, uploadGraceMs } = limits
  const shortest = Math.min(connectTimeoutMs, responseTimeoutMs, idleTimeoutMs || 1_000, keepAliveMs, uploadGraceMs)
  return Math.min(1_000, Math.max(20, shortest / 4))
}
