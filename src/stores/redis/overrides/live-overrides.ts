import { OverrideRanges } from '../../../core/overrides/override-ranges.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { bytePairsReply, pairsReply } from '../../../redis/client/replies.js'

/** Whoever changes what is in force tells Redis; all others see it within this time. */
const readEveryMs = 500

/**
 * What processes know of all overrides, because a decision cannot ask for it: which generation of each rule is in force,
 * and the ranges of addresses, which are in no one's slot. Read now and then, from the first decision that needs it on.
 */
export class LiveOverrides {
  readonly #connection: RedisConnection
  /** By rule, the generation in force; and as `ranges` a number that grows with every change of a range. */
  readonly liveKey: string
  /** By rule, generation and range: the override. In the same slot as the other. */
  readonly rangesKey: string
  #live: ReadonlyMap<string, number> = new Map()
  #ranges: ReadonlyMap<string, OverrideRanges<Buffer>> = new Map()
  #rangesVersion = ''
  #reading: Promise<void> | undefined
  #isKnown = false
  #isClosed = false
  #timer: NodeJS.Timeout | undefined

  constructor(connection: RedisConnection, prefix: string) {
    this.#connection = connection
    this.liveKey = `${prefix}:{overrides}:live`
    this.rangesKey = `${prefix}:{overrides}:ranges`
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  /** The same as long as no rule has other generations or ranges. */
  get generations(): object {
    return this.#live
  }

  /** Resolves once it is known; from then on it is read again now and then. */
  async known(): Promise<void> {
    if (this.#isKnown) return
    await this.read()
    if (this.#timer === undefined) this.#later()
  }

  /** Which generation of overrides is in force. All of a rule are replaced together, by another generation. */
  of(ruleSetId: string, ruleId: string): number {
    return this.#live.get(ruleName(ruleSetId, ruleId)) ?? 0
  }

  rangesOf(ruleSetId: string, ruleId: string): OverrideRanges<Buffer> | undefined {
    return this.#ranges.get(ruleName(ruleSetId, ruleId))
  }

  /** As it is at this moment. */
  async ask(ruleSetId: string, ruleId: string): Promise<number> {
    return Number(await this.#connection.call(this.liveKey, ['HGET', this.liveKey, ruleName(ruleSetId, ruleId)]))
  }

  /** Several who ask at the same time share an answer. */
  read(): Promise<void> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** A server that cannot be asked now is asked again later; what is known stays known. */
  #later(): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(() => {
      void this.read()
        .catch(() => {})
        .then(() => this.#later())
    }, readEveryMs)
    this.#timer.unref()
  }

  async #readAll(): Promise<void> {
    const pairs = pairsReply(await this.#connection.call(this.liveKey, ['HGETALL', this.liveKey]))
    const live = new Map<string, number>()
    let version = ''
    for (let i = 0; i < pairs.length; i += 2)
      if (pairs[i] === 'ranges') version = String(pairs[i + 1])
      else if (String(pairs[i]).startsWith('[')) live.set(String(pairs[i]), Number(pairs[i + 1]))
    const isChanged = version !== this.#rangesVersion || !isSame(live, this.#live)
    if (isChanged) {
      this.#ranges = await this.#readRanges(live)
      this.#live = live
      this.#rangesVersion = version
    }
    this.#isKnown = true
  }

  async #readRanges(live: ReadonlyMap<string, number>): Promise<Map<string, OverrideRanges<Buffer>>> {
    const pairs = bytePairsReply(await this.#connection.call(this.rangesKey, ['HGETALL', this.rangesKey], true))
    const byRule = new Map<string, [string, Buffer][]>()
    for (let i = 0; i < pairs.length; i += 2) {
      const [ruleSetId, ruleId, generation, range] = JSON.parse(String(pairs[i])) as [string, string, number, string]
      const name = ruleName(ruleSetId, ruleId)
      if (generation !== (live.get(name) ?? 0)) continue
      byRule.set(name, [...(byRule.get(name) ?? []), [range, pairs[i + 1] as Buffer]])
    }
    return new Map([...byRule].map(([name, ranges]) => [name, new OverrideRanges(ranges)]))
  }
}

export const ruleName = (ruleSetId: string, ruleId: string): string => JSON.stringify([ruleSetId, ruleId])

export const rangeName = (ruleSetId: string, ruleId: string, generation: number, range: string): string =>
  JSON.stringify([ruleSetId, ruleId, generation, range])

const isSame = (one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): boolean =>
  one.size === other.size && [...one].every(([name, generation]) => other.get(name) === generation)
