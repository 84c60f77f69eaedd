import { OverrideRanges } from '../../../core/overrides/override-ranges.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { bytePairsReply, pairsReply } from '../../../redis/client/replies.js'
import { activeKey, parseRangeField, type RuleRef, rangesKey, ruleField } from './keys.js'

const refreshMs = 500

/**
 * A local copy of the data that is not in the slot of a decision: the active generation of each rule, and the address ranges
 * with overrides. It is loaded before the first decision that needs it and refreshed every 500 ms.
 */
export class ActiveGenerations {
  readonly #connection: RedisConnection
  readonly #activeKey: string
  readonly #rangesKey: string
  #generations: ReadonlyMap<string, number> = new Map()
  #ranges: ReadonlyMap<string, OverrideRanges<Buffer>> = new Map()
  #rangesVersion = ''
  #refreshing: Promise<void> | undefined
  #isLoaded = false
  #isClosed = false
  #timer: NodeJS.Timeout | undefined

  constructor(connection: RedisConnection, prefix: string) {
    this.#connection = connection
    this.#activeKey = activeKey(prefix)
    this.#rangesKey = rangesKey(prefix)
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Compared by identity. Changes whenever a generation or a range does. */
  get version(): object {
    return this.#generations
  }

  /** Loads the data once and starts the refresh. */
  async load(): Promise<void> {
    if (this.#isLoaded) return
    await this.refresh()
    if (this.#timer === undefined) this.#scheduleRefresh()
  }

  /** All overrides of a rule have the same generation. 0 if there was no import yet. */
  generationOf(rule: RuleRef): number {
    return this.#generations.get(ruleField(rule)) ?? 0
  }

  rangesOf(rule: RuleRef): OverrideRanges<Buffer> | undefined {
    return this.#ranges.get(ruleField(rule))
  }

  /** Asks Redis for the active generation, without the local copy. */
  async fetchGeneration(rule: RuleRef): Promise<number> {
    return Number(await this.#connection.call(this.#activeKey, ['HGET', this.#activeKey, ruleField(rule)]))
  }

  /** Concurrent calls share one refresh. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#readAll().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** A refresh that fails keeps the old data and is retried. */
  #scheduleRefresh(): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(() => {
      void this.refresh()
        .catch(() => {})
        .then(() => this.#scheduleRefresh())
    }, refreshMs)
    this.#timer.unref()
  }

  async #readAll(): Promise<void> {
    const pairs = pairsReply(await this.#connection.call(this.#activeKey, ['HGETALL', this.#activeKey]))
    const generations = new Map<string, number>()
    let rangesVersion = ''
    for (let i = 0; i < pairs.length; i += 2)
      if (pairs[i] === 'ranges') rangesVersion = String(pairs[i + 1])
      else if (String(pairs[i]).startsWith('[')) generations.set(String(pairs[i]), Number(pairs[i + 1]))
    if (rangesVersion !== this.#rangesVersion || !areEqual(generations, this.#generations)) {
      this.#ranges = await this.#readRanges(generations)
      this.#generations = generations
      this.#rangesVersion = rangesVersion
    }
    this.#isLoaded = true
  }

  async #readRanges(generations: ReadonlyMap<string, number>): Promise<Map<string, OverrideRanges<Buffer>>> {
    const pairs = bytePairsReply(await this.#connection.call(this.#rangesKey, ['HGETALL', this.#rangesKey], true))
    const byRule = new Map<string, [string, Buffer][]>()
    for (let i = 0; i < pairs.length; i += 2) {
      const { rule, generation, range } = parseRangeField(String(pairs[i]))
      const field = ruleField(rule)
      if (generation !== (generations.get(field) ?? 0)) continue
      byRule.set(field, [...(byRule.get(field) ?? []), [range, pairs[i + 1] as Buffer]])
    }
    return new Map([...byRule].map(([field, ranges]) => [field, new OverrideRanges(ranges)]))
  }
}

const areEqual = (one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): boolean =>
  one.size === other.size && [...one].every(([field, generation]) => other.get(field) === generation)
