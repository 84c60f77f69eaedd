import type { Transfer } from './transfer.js'
import { WaitingQueue } from './waiting-queue.js'

interface Share {
  /** Transfers that have a connection or wait for one in the common queue. */
  active: number
  /** Transfers beyond the share, which wait for another one of the same client to end. */
  readonly parked: WaitingQueue<Transfer>
}

/**
 * Limits how many connections to an upstream one client address occupies, so that slow clients cannot occupy all. A client
 * with more requests waits for its own; the common queue stays short for the others. All operations are O(1).
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

  /** True if the transfer may compete for a connection; else it is parked until `leave` returns it. */
  enter(transfer: Transfer): boolean {
    if (this.#max === Number.POSITIVE_INFINITY) return true
    transfer.client = transfer.exchange.clientAddress()
    const share = this.#shareOf(transfer.client)
    if (share.active < this.#max) {
      share.active += 1
      return true
    }
    transfer.isParked = true
    share.parked.push(transfer)
    this.#parked += 1
    return false
  }

  /** To be called once for each transfer that ends. Returns a parked one that may compete for a connection instead. */
  leave(transfer: Transfer): Transfer | undefined {
    const share = transfer.client === undefined ? undefined : this.#shares.get(transfer.client)
    if (share === undefined) return undefined
    if (transfer.isParked) {
      this.#unpark(share, transfer)
      return undefined
    }
    const next = share.parked.first
    if (next !== undefined) this.#unpark(share, next)
    else if (--share.active === 0) this.#shares.delete(transfer.client as string)
    return next
  }

  visitParked(callback: (transfer: Transfer) => void): void {
    if (this.#parked > 0) for (const { parked } of this.#shares.values()) parked.visit(callback)
  }

  #unpark(share: Share, transfer: Transfer): void {
    share.parked.remove(transfer)
    transfer.isParked = false
    this.#parked -= 1
  }

  #shareOf(client: string): Share {
    const known = this.#shares.get(client)
    if (known !== undefined) return known
    const share: Share = { active: 0, parked: new WaitingQueue<Transfer>() }
    this.#shares.set(client, share)
    return share
  }
}
