import type { SharedGenerations } from '../../core/bucket-store.js'
import { maxFillTicks } from '../../core/rule.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { pairsReply } from '../../redis/client/replies.js'
import { withTimeout } from '../../redis/client/with-timeout.js'

/** Polling interval: other processes notice a reset within this time. */
const pollMs = 500
/** Minimum timeout of a reset. No request waits for it. */
const minTimeoutMs = 1_000
/** No bucket lives longer than this, so generations may restart from 0 afterwards. */
const ttlMs = Math.ceil(maxFillTicks / 1_000)

/** Increments all rules of a set atomically and renews the TTL. */
const incrementScript = `for i = 2, #ARGV do redis.call('HINCRBY', KEYS[1], ARGV[i], 1) end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`

/** Generations in one Redis hash. Incrementing a generation resets a rule, whatever the number of its buckets. */
export class RedisGenerations implements SharedGenerations {
  readonly #connection: RedisConnection
  readonly #key: string
  readonly #timeoutMs: number
  #generations: ReadonlyMap<string, number> = new Map()
  #isKnown = false
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined

  constructor(connection: RedisConnection, prefix: string, timeoutMs = 0) {
    this.#connection = connection
    this.#key = `${prefix}:resets`
    this.#timeoutMs = Math.max(timeoutMs, minTimeoutMs)
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  of(ruleSetId: string, ruleId: string): number {
    return this.#generations.get(fieldOf(ruleSetId, ruleId)) ?? 0
  }

  async resetRules(ruleSetId: string, ruleIds: readonly string[]): Promise<void> {
    const fields = ruleIds.map((ruleId) => fieldOf(ruleSetId, ruleId))
    const call = { subject: 'The bucket store', operation: 'reset a rule', timeoutMs: this.#timeoutMs }
    await withTimeout(call, () => this.#increment(fields))
  }

  async #increment(fields: readonly string[]): Promise<void> {
    await this.#connection.call(this.#key, ['EVAL', incrementScript, '1', this.#key, String(ttlMs), ...fields])
    await this.read()
  }

  watch(onChange: () => void): () => void {
    this.#listeners.add(onChange)
    if (this.#listeners.size === 1) void this.#poll()
    return () => {
      this.#listeners.delete(onChange)
      if (this.#listeners.size === 0) clearTimeout(this.#timer)
    }
  }

  /** If Redis is unavailable, the known generations stay in effect until the next poll. */
  async #poll(): Promise<void> {
    await this.read().catch(() => {})
    if (this.#listeners.size === 0) return
    this.#timer = setTimeout(() => void this.#poll(), pollMs)
    this.#timer.unref()
  }

  async read(): Promise<void> {
    const pairs = pairsReply(await this.#connection.call(this.#key, ['HGETALL', this.#key]))
    const generations = new Map<string, number>()
    for (let i = 0; i < pairs.length; i += 2) generations.set(String(pairs[i]), Number(pairs[i + 1]))
    const isChanged = !this.#isKnown || !isSame(generations, this.#generations)
    this.#generations = generations
    this.#isKnown = true
    if (isChanged) for (const listener of this.#listeners) listener()
  }
}

const fieldOf = (ruleSetId: string, ruleId: string): string => JSON.stringify([ruleSetId, ruleId])

const isSame = (one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): boolean =>
  one.size === other.size && [...one].every(([field, generation]) => other.get(field) === generation)
