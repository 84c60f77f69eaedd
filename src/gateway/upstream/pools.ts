import type { RouteTimeouts } from './exchange.js'
import { type Origin, originKey } from './origin.js'
import { type PoolLimits, UpstreamPool } from './pool.js'

/** All upstreams. One timer checks all time-outs: a timer per request would cost more. */
export class UpstreamPools {
  readonly #limits: PoolLimits
  readonly #pools = new Map<string, UpstreamPool>()
  #timer: NodeJS.Timeout | undefined

  constructor(limits: PoolLimits) {
    this.#limits = limits
  }

  /** Looks often enough for these too. */
  watch(timeouts: readonly RouteTimeouts[]): void {
    const all = [this.#limits, ...timeouts.map((own) => ({ ...this.#limits, ...own }))]
    clearInterval(this.#timer)
    this.#timer = setInterval(() => this.#checkTime(), Math.min(...all.map(lookEveryMs))).unref()
  }

  to(origin: Origin): UpstreamPool {
    const key = originKey(origin)
    const known = this.#pools.get(key)
    if (known !== undefined) return known
    const pool = new UpstreamPool(origin, this.#limits)
    this.#pools.set(key, pool)
    return pool
  }

  /** These are the upstreams from now on. */
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

/** Often enough for the shortest of them to be met within a quarter. */
function lookEveryMs(limits: PoolLimits): number {
  const { connectTimeoutMs, responseTimeoutMs, idleTimeoutMs, keepAliveMs, uploadGraceMs } = limits
  const shortest = Math.min(connectTimeoutMs, responseTimeoutMs, idleTimeoutMs || 1_000, keepAliveMs, uploadGraceMs)
  return Math.min(1_000, Math.max(20, shortest / 4))
}
