import { randomBytes } from 'node:crypto'
import type { BucketGroup } from '../../../core/bucket-store.js'
import { FluxGateError } from '../../../core/errors.js'
import {
  type EntryPage,
  type EntryQuery,
  isOver,
  type OverrideBook,
  type OverrideEntry,
  type OverrideName,
  type OverrideTerms,
} from '../../../core/overrides/override-book.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { wrapRedisError } from '../../../redis/client/connection-errors.js'
import { bytePairsReply, bytesReply } from '../../../redis/client/replies.js'
import type { OverridePlace } from '../work.js'
import { editScript } from './edits.js'
import { editKey, hashName, identitySlot, overrideHash } from './hashes.js'
import { OverrideHousekeeping } from './housekeeping.js'
import { LiveOverrides, rangeName } from './live-overrides.js'
import { OverridePages } from './pages.js'
import { decodeTerms, encodeTerms } from './value.js'

/** Every process holds all ranges. */
const mostRanges = 10_000
const noOverride = Buffer.alloc(0)

/** Both at once, so that nobody sees a number that has grown without the change. */
const editRanges = `local changed = redis.call(ARGV[1], KEYS[2], unpack(ARGV, 2))
redis.call('HINCRBY', KEYS[1], 'ranges', 1)
return changed`

/** Overrides in Redis, beside the buckets of their identities. */
export class RedisOverrides implements OverrideBook {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #nowMs: () => number
  readonly #live: LiveOverrides
  readonly #housekeeping: OverrideHousekeeping

  constructor(connection: RedisConnection, prefix: string, nowMs: () => number) {
    this.#connection = connection
    this.#prefix = prefix
    this.#nowMs = nowMs
    this.#live = new LiveOverrides(connection, prefix)
    this.#housekeeping = new OverrideHousekeeping(connection, prefix)
  }

  get isKnown(): boolean {
    return this.#live.isKnown
  }

  get generations(): object {
    return this.#live.generations
  }

  async known(): Promise<void> {
    await this.#live.known()
    this.#housekeeping.start()
  }

  close(): void {
    this.#live.close()
    this.#housekeeping.close()
  }

  placeOf(group: BucketGroup, key: string): OverridePlace {
    const { ruleSetId, ruleId } = group
    const hash = overrideHash(this.#prefix, group, this.#live.of(ruleSetId, ruleId), key)
    return { hash, otherwise: this.rangeOf(group, key) ?? noOverride }
  }

  /** Of the smallest range that holds this address, what it has. */
  rangeOf({ ruleSetId, ruleId, countsAddresses }: BucketGroup, key: string): Buffer | undefined {
    return countsAddresses ? this.#live.rangesOf(ruleSetId, ruleId)?.find(key) : undefined
  }

  get(name: OverrideName): Promise<OverrideTerms | undefined> {
    return this.#wrapped('read an override', async () => {
      const live = await this.#live.ask(name.ruleSetId, name.ruleId)
      const [hash, field] = this.#placeIn(live, name)
      const value = await this.#connection.call(hash, ['HGET', hash, field], true)
      const terms = value === null ? undefined : decodeTerms(bytesReply(value))
      return terms === undefined || isOver(terms, this.#nowMs()) ? undefined : terms
    })
  }

  async put(name: OverrideName, terms: OverrideTerms): Promise<boolean> {
    const wasThere = (await this.get(name)) !== undefined
    await this.#wrapped('keep an override', async () => {
      if (name.isRange) await this.#checkRanges(name)
      await this.#edit(name, 'HSET', encodeTerms(terms))
    })
    return !wasThere
  }

  async delete(name: OverrideName): Promise<boolean> {
    const wasThere = (await this.get(name)) !== undefined
    await this.#wrapped('delete an override', () => this.#edit(name, 'HDEL'))
    return wasThere
  }

  list(ruleSetId: string, ruleId: string, query: EntryQuery): Promise<EntryPage> {
    return this.#wrapped('list overrides', async () => {
      const live = await this.#live.ask(ruleSetId, ruleId)
      const pages = new OverridePages(this.#connection, {
        hashOf: (slot) => hashName(this.#prefix, { ruleSetId, ruleId }, live, slot),
        ranges: () => this.#ranges(ruleSetId, ruleId, live),
        nowMs: this.#nowMs(),
      })
      return pages.read(query)
    })
  }

  /** In the generation that is in force, also if it is replaced meanwhile. */
  async #edit(name: OverrideName, command: 'HSET' | 'HDEL', ...value: Buffer[]): Promise<void> {
    const { ruleSetId, ruleId } = name
    for (let live = await this.#live.ask(ruleSetId, ruleId); ; ) {
      const [hash, field] = this.#placeIn(live, name)
      if (name.isRange) {
        const keys = [this.#live.liveKey, this.#live.rangesKey]
        await this.#connection.call(hash, ['EVAL', editRanges, '2', ...keys, command, field, ...value])
      } else {
        const slot = this.#connection.isCluster ? identitySlot(this.#prefix, field) : undefined
        const keys = [hash, editKey(this.#prefix, slot)]
        const edit = randomBytes(9).toString('base64url')
        await this.#connection.call(hash, ['EVAL', editScript, '2', ...keys, command, edit, field, ...value])
      }
      const after = await this.#live.ask(ruleSetId, ruleId)
      if (after === live) break
      live = after
    }
    // Here it is in force for the next decision, whatever was known before.
    if (this.#live.isKnown) await this.#live.read()
  }

  #placeIn(generation: number, { ruleSetId, ruleId, key, isRange }: OverrideName): [hash: string, field: string] {
    if (isRange) return [this.#live.rangesKey, rangeName(ruleSetId, ruleId, generation, key)]
    return [overrideHash(this.#prefix, { ruleSetId, ruleId }, generation, key), key]
  }

  async #checkRanges({ key }: OverrideName): Promise<void> {
    const { rangesKey } = this.#live
    if (Number(await this.#connection.call(rangesKey, ['HLEN', rangesKey])) < mostRanges) return
    throw new FluxGateError('FLUXGATE_OVERRIDE_INVALID', `There are ${mostRanges} ranges of addresses already.`, {
      errors: [
        {
          path: 'key',
          message: `found ${key}, one range more than ${mostRanges}; allowed: addresses, or fewer ranges`,
        },
      ],
    })
  }

  async #ranges(ruleSetId: string, ruleId: string, generation: number): Promise<OverrideEntry[]> {
    const { rangesKey } = this.#live
    const pairs = bytePairsReply(await this.#connection.call(rangesKey, ['HGETALL', rangesKey], true))
    const entries: OverrideEntry[] = []
    for (let i = 0; i < pairs.length; i += 2) {
      const [ofSet, ofRule, ofGeneration, key] = JSON.parse(String(pairs[i])) as [string, string, number, string]
      const terms = decodeTerms(pairs[i + 1] as Buffer)
      const isOurs = ofSet === ruleSetId && ofRule === ruleId && ofGeneration === generation
      if (isOurs && !isOver(terms, this.#nowMs())) entries.push({ key, terms })
    }
    return entries
  }

  async #wrapped<T>(what: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw wrapRedisError(error, what)
    }
  }
}
