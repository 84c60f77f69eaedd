import { UpstreamConnection, type UpstreamTimeouts } from './connection.js'
import type { Exchange } from './exchange.js'
import type { Origin } from './origin.js'

export interface PoolLimits extends UpstreamTimeouts {
  /** To one upstream; further requests wait for one of them. */
  readonly maxConnections: number
}

interface Waiting {
  readonly exchange: Exchange
  readonly sinceAt: number
}

/** The connections to one upstream. The one used last is used next, so that those nobody needs grow old. */
export class UpstreamPool {
  readonly #origin: Origin
  readonly #limits: PoolLimits
  readonly #all = new Set<UpstreamConnection>()
  readonly #idle: UpstreamConnection[] = []
  #waiting: Waiting[] = []
  /** No route leads here any more. */
  isRetired = false

  constructor(origin: Origin, limits: PoolLimits) {
    this.#origin = origin
    this.#limits = limits
  }

  get isEmpty(): boolean {
    return this.#all.size === 0 && this.#waiting.length === 0
  }

  request(exchange: Exchange): void {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (kept.isUsable) {
        kept.begin(exchange)
        return
      }
      kept.abandon()
    }
    if (this.#all.size < this.#limits.maxConnections) this.requestAnew(exchange)
    else this.#waiting.push({ exchange, sinceAt: performance.now() })
  }

  /** On a connection that cannot have been closed since its last use, because it had none. */
  requestAnew(exchange: Exchange): void {
    const connection = new UpstreamConnection(this.#origin, this)
    this.#all.add(connection)
    connection.begin(exchange)
  }

  /** For who still waits for a connection. */
  cancel(exchange: Exchange): void {
    if (this.#waiting.length > 0) this.#waiting = this.#waiting.filter((one) => one.exchange !== exchange)
  }

  checkTime(now: number): void {
    for (const connection of this.#all) connection.checkTime(now, this.#limits)
    if (this.#waiting.length === 0) return
    const { connectTimeoutMs, maxConnections } = this.#limits
    const isLate = ({ exchange, sinceAt }: Waiting): boolean =>
      now - sinceAt > (exchange.timeouts?.connectTimeoutMs ?? connectTimeoutMs)
    const late = this.#waiting.filter(isLate)
    this.#waiting = this.#waiting.filter((one) => !isLate(one))
    const detail = `all ${maxConnections} connections to it were taken`
    for (const { exchange } of late) exchange.onFailure({ kind: 'BUSY', detail, wasIdle: false })
  }

  /** What is under way ends, and nothing is kept. */
  retire(): void {
    this.isRetired = true
    for (const connection of this.#idle.splice(0)) connection.abandon()
  }

  onIdle(connection: UpstreamConnection): void {
    const next = this.#waiting.shift()
    if (next !== undefined) connection.begin(next.exchange)
    else if (this.isRetired) connection.abandon()
    else this.#idle.push(connection)
  }

  onGone(connection: UpstreamConnection): void {
    if (!this.#all.delete(connection)) return
    const index = this.#idle.indexOf(connection)
    if (index !== -1) this.#idle.splice(index, 1)
    const next = this.#waiting.shift()
    if (next !== undefined) this.requestAnew(next.exchange)
  }
}
