import type { UpstreamRequest } from './upstream-request.js'
import { WaitingQueue } from './waiting-queue.js'

interface Share {
  /** Requests that have a connection or wait for one in the common queue. */
  active: number
  /** Requests beyond the share. They wait until another request of the same client ends. */
  readonly parked: WaitingQueue<UpstreamRequest>
}

/**
 * Limits the upstream connections of one client address, so that slow clients cannot occupy all of them. Further requests of
 * the client wait outside the common queue, which stays short for other clients. All operations are O(1).
 */
export class ClientShares {
  readonly #max: number
  readonly #shares = new Map<string, Share>()
  #parked = 0

  /** `share` 1 or more: no limit. */
  constructor(maxConnections: number, share: number) {
    this.#max = share >= 1 ? Number.POSITIVE_INFINITY : Math.max(1, Math.ceil(maxConnections * share))
  }

  get parked(): number {
    return this.#parked
  }

  /** Returns true if the request may use or queue for a connection. Otherwise it is parked until `leave` returns it. */
  enter(request: UpstreamRequest): boolean {
    if (this.#max === Number.POSITIVE_INFINITY) return true
    request.client = request.exchange.clientAddress()
    const share = this.#shareOf(request.client)
    if (share.active < this.#max) {
      share.active += 1
      return true
    }
    request.isParked = true
    share.parked.push(request)
    this.#parked += 1
    return false
  }

  /** Must be called once for each request that ends. Returns a parked request that may now queue for a connection. */
  leave(request: UpstreamRequest): UpstreamRequest | undefined {
    const share = request.client === undefined ? undefined : this.#shares.get(request.client)
    if (share === undefined) return undefined
    if (request.isParked) {
      this.#unpark(share, request)
      return undefined
    }
    const next = share.parked.first
    if (next !== undefined) this.#unpark(share, next)
    else if (--share.active === 0) this.#shares.delete(request.client as string)
    return next
  }

  forEachParked(callback: (request: UpstreamRequest) => void): void {
    if (this.#parked > 0) for (const { parked } of this.#shares.values()) parked.forEach(callback)
  }

  #unpark(share: Share, request: UpstreamRequest): void {
    share.parked.remove(request)
    request.isParked = false
    this.#parked -= 1
  }

  #shareOf(client: string): Share {
    const known = this.#shares.get(client)
    if (known !== undefined) return known
    const share: Share = { active: 0, parked: new WaitingQueue<UpstreamRequest>() }
    this.#shares.set(client, share)
    return share
  }
}
