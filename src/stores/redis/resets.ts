import type { SharedResets } from '../../core/bucket-store.js'
import { maxFillTicks } from '../../core/rule.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { pairsReply } from '../../redis/client/replies.js'
import { within } from '../../redis/client/within.js'

/** Whoever resets a rule tells Redis; all others see it within this time. */
const readEveryMs = 500
/** How long a reset may take at least: no request waits for it. */
const leastTimeoutMs = 1_000
/** No bucket lives longer than this, so that counts may then begin again from nothing. */
const longestTtlMs = Math.ceil(maxFillTicks / 1_000)

/** All rules of a set at once, and never a key without an end. */
const countUp = `for i = 2, #ARGV do redis.call('HINCRBY', KEYS[1], ARGV[i], 1) end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`

/** The counts, in one hash: a rule is reset by counting up, whatever the number of its buckets. */
export class RedisResets implements SharedResets {
  readonly #connection: RedisConnection
  readonly #key: string
  readonly #timeoutMs: number
  #counts: ReadonlyMap<string, number> = new Map()
  #isKnown = false
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined

  constructor(connection: RedisConnection, prefix: string, timeoutMs = 0) {
    this.#connection = connection
    this.#key = `${prefix}:resets`
    this.#timeoutMs = Math.max(timeoutMs, leastTimeoutMs)
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  of(ruleSetId: string, ruleId: string): number {
    return this.#counts.get(nameOf(ruleSetId, ruleId)) ?? 0
  }

  async resetRules(ruleSetId: string, ruleIds: readonly string[]): Promise<void> {
    const fields = ruleIds.map((ruleId) => nameOf(ruleSetId, ruleId))
    const call = { who: 'The bucket store', what: 'reset a rule', timeoutMs: this.#timeoutMs }
    await within(call, () => this.#countUp(fields))
  }

  async #countUp(fields: readonly string[]): Promise<void> {
    await this.#connection.call(this.#key, ['EVAL', countUp, '1', this.#key, String(longestTtlMs), ...fields])
    await this.read()
  }

  watch(onChange: () => void): () => void {
    this.#listeners.add(onChange)
    if (this.#listeners.size === 1) void this.#readAgain()
    return () => {
      this.#listeners.delete(onChange)
      if (this.#listeners.size === 0) clearTimeout(this.#timer)
    }
  }

  /** A server that cannot be asked now is asked again later; what is known stays known. */
  async #readAgain(): Promise<void> {
    await this.read().catch(() => {})
    if (this.#listeners.size === 0) return
    this.#timer = setTimeout(() => void this.#readAgain(), readEveryMs)
    this.#timer.unref()
  }

  async read(): Promise<void> {
    const pairs = pairsReply(await this.#connection.call(this.#key, ['HGETALL', this.#key]))
    const counts = new Map<string, number>()
    for (let i = 0; i < pairs.length; i += 2) counts.set(String(pairs[i]), Number(pairs[i + 1]))
    const isNew = !this.#isKnown || !isSame(counts, this.#counts)
    this.#counts = counts
    this.#isKnown = true
    if (isNew) for (const listener of this.#listeners) listener()
  }
}

const nameOf = (ruleSetId: string, ruleId: string): string => JSON.stringify([ruleSetId, ruleId])

const isSame = (one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): boolean =>
  one.size === other.size && [...one].every(([name, count]) => other.get(name) === count)
