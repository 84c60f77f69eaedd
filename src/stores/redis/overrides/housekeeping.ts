import type { RedisConnection } from '../../../redis/client/connection.js'
import { lockOn, type RedisLock } from '../../../redis/lock/lock-on.js'
import { OverrideGenerations, owedKey } from './generations.js'

const everyMs = 600_000
/** An import that has given no sign of life for so long is dead. */
const deadMs = 600_000

const owedScript = `local time = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', time[1] * 1000 - ARGV[1], 'LIMIT', 0, 100)`

/**
 * Removes what imports have left behind whose process ended before they did, and what was replaced and never removed. One
 * process of all does it at a time, by a lock; of the others each looks again after a while.
 */
export class OverrideHousekeeping {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #lock: RedisLock
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(connection: RedisConnection, prefix: string) {
    this.#connection = connection
    this.#prefix = prefix
    this.#lock = lockOn(connection, { prefix })
  }

  start(): void {
    if (this.#timer !== undefined || this.#isClosed) return
    // Not all at the same time.
    const waitMs = everyMs * (0.5 + Math.random())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.run()
        // Whoever may not, or cannot now, leaves it to others, and to the next time.
        .catch(() => {})
        .then(() => this.start())
    }, waitMs)
    this.#timer.unref()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** How many generations were removed; none if another process is at it. */
  async run(olderThanMs: number = deadMs): Promise<number> {
    const hold = await this.#lock.tryAcquire('overrides:housekeeping')
    if (hold === undefined) return 0
    try {
      return await this.#removeOwed(olderThanMs, hold.signal)
    } finally {
      await hold.release()
    }
  }

  async #removeOwed(olderThanMs: number, signal: AbortSignal): Promise<number> {
    const key = owedKey(this.#prefix)
    const command = ['EVAL', owedScript, '1', key, String(olderThanMs)]
    const owed = (await this.#connection.call(key, command)) as readonly unknown[]
    let removed = 0
    for (const text of owed.map(String)) {
      if (signal.aborted || this.#isClosed) break
      const end = text.indexOf(' ')
      const generation = Number(text.slice(0, end))
      const [ruleSetId, ruleId] = JSON.parse(text.slice(end + 1)) as [string, string]
      const generations = new OverrideGenerations(this.#connection, this.#prefix, { ruleSetId, ruleId })
      // What is in force is never owed; but a mistake here would cost somebody all overrides.
      if ((await generations.live.ask(ruleSetId, ruleId)) === generation) continue
      await generations.remove(generation)
      removed++
    }
    return removed
  }
}
