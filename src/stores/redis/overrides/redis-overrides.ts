import { randomBytes } from 'node:crypto'
import type { BucketGroup } from '../../../core/bucket-store.js'
import { FluxGateError } from '../../../core/errors.js'
import {
  type EntryPage,
  type EntryQuery,
  hasExpired,
  type OverrideEntry,
  type OverrideId,
  type OverrideStorage,
  type OverrideTerms,
} from '../../../core/overrides/override-storage.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { wrapRedisError } from '../../../redis/client/errors.js'
import { bytePairsReply, bytesReply } from '../../../redis/client/replies.js'
import type { OverrideLocation } from '../operation.js'
import { ActiveGenerations } from './active-generations.js'
import { decodeTerms, encodeTerms } from './encoding.js'
import { OverrideCleanup } from './import/cleanup.js'
import {
  activeKey,
  editKey,
  hashOfSlot,
  overrideHash,
  parseRangeField,
  type RuleRef,
  rangeField,
  rangesKey,
  ruleField,
  slotOfKey,
} from './keys.js'
import { editScript } from './last-edit.js'
import { OverridePages } from './pages.js'

/** Bounded, because every process keeps all ranges in memory. */
const maxRanges = 10_000
const noOverride = Buffer.alloc(0)

/**
 * Changes a range and its version atomically.
 * KEYS  active generations, ranges
 * ARGV  HSET or HDEL, field of the range, value of HSET
 */
const editRangeScript = `local changed = redis.call(ARGV[1], KEYS[2], unpack(ARGV, 2))
redis.call('HINCRBY', KEYS[1], 'ranges', 1)
return changed`

/** Overrides in Redis, each in the cluster slot of its buckets. */
export class RedisOverrides implements OverrideStorage {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #nowMs: () => number
  readonly #active: ActiveGenerations
  readonly #cleanup: OverrideCleanup
  readonly #rangesKey: string

  constructor(connection: RedisConnection, prefix: string, nowMs: () => number) {
    this.#connection = connection
    this.#prefix = prefix
    this.#nowMs = nowMs
    this.#active = new ActiveGenerations(connection, prefix)
    this.#cleanup = new OverrideCleanup(connection, prefix)
    this.#rangesKey = rangesKey(prefix)
  }

  get isLoaded(): boolean {
    return this.#active.isLoaded
  }

  /** Compared by identity. Changes whenever a generation or a range does. */
  get version(): object {
    return this.#active.version
  }

  /** Loads what decisions need to locate overrides, and starts the background work. */
  async load(): Promise<void> {
    await this.#active.load()
    this.#cleanup.start()
  }

  close(): void {
    this.#active.close()
    this.#cleanup.close()
  }

  /** Where a decision looks up the override of a key. */
  locate(group: BucketGroup, key: string): OverrideLocation {
    const hash = overrideHash(this.#prefix, group, this.#active.generationOf(group), key)
    return { hash, otherwise: this.rangeOf(group, key) ?? noOverride }
  }

  /** The override of the smallest range that contains the address. */
  rangeOf(group: BucketGroup, key: string): Buffer | undefined {
    return group.countsAddresses ? this.#active.rangesOf(group)?.find(key) : undefined
  }

  get(id: OverrideId): Promise<OverrideTerms | undefined> {
    return this.#wrapErrors('read an override', async () => {
      const [hash, field] = this.#fieldOf(id, await this.#active.fetchGeneration(id))
      const value = await this.#connection.call(hash, ['HGET', hash, field], true)
      const terms = value === null ? undefined : decodeTerms(bytesReply(value))
      return terms === undefined || hasExpired(terms, this.#nowMs()) ? undefined : terms
    })
  }

  async put(id: OverrideId, terms: OverrideTerms): Promise<boolean> {
    const existed = (await this.get(id)) !== undefined
    await this.#wrapErrors('write an override', async () => {
      if (id.isRange) await this.#checkRangeCount(id)
      await this.#edit(id, 'HSET', encodeTerms(terms))
    })
    return !existed
  }

  async delete(id: OverrideId): Promise<boolean> {
    const existed = (await this.get(id)) !== undefined
    await this.#wrapErrors('delete an override', () => this.#edit(id, 'HDEL'))
    return existed
  }

  list(ruleSetId: string, ruleId: string, query: EntryQuery): Promise<EntryPage> {
    const rule = { ruleSetId, ruleId }
    return this.#wrapErrors('list overrides', async () => {
      const generation = await this.#active.fetchGeneration(rule)
      const pages = new OverridePages(this.#connection, {
        hashOf: (slot) => hashOfSlot(this.#prefix, rule, generation, slot),
        ranges: () => this.#rangeEntries(rule, generation),
        nowMs: this.#nowMs(),
      })
      return pages.read(query)
    })
  }

  /** Edits the active generation, and repeats the edit if an import has replaced that generation. */
  async #edit(id: OverrideId, command: 'HSET' | 'HDEL', ...value: Buffer[]): Promise<void> {
    let generation: number
    let active = await this.#active.fetchGeneration(id)
    do {
      generation = active
      const [hash, field] = this.#fieldOf(id, generation)
      if (id.isRange) {
        const keys = [activeKey(this.#prefix), hash]
        await this.#connection.call(hash, ['EVAL', editRangeScript, '2', ...keys, command, field, ...value])
      } else {
        const slot = this.#connection.isCluster ? slotOfKey(this.#prefix, field) : undefined
        const keys = [hash, editKey(this.#prefix, slot)]
        const editId = randomBytes(9).toString('base64url')
        await this.#connection.call(hash, ['EVAL', editScript, '2', ...keys, command, editId, field, ...value])
      }
      active = await this.#active.fetchGeneration(id)
    } while (active !== generation)
    // The edit applies to the next decision of this process.
    if (this.#active.isLoaded) await this.#active.refresh()
  }

  #fieldOf(id: OverrideId, generation: number): [hash: string, field: string] {
    return id.isRange
      ? [this.#rangesKey, rangeField(id, generation, id.key)]
      : [overrideHash(this.#prefix, id, generation, id.key), id.key]
  }

  async #checkRangeCount({ key }: OverrideId): Promise<void> {
    if (Number(await this.#connection.call(this.#rangesKey, ['HLEN', this.#rangesKey])) < maxRanges) return
    const message = `must be a single address, because the limit of ${maxRanges} address ranges is reached; received ${key}. Delete unused ranges.`
    throw new FluxGateError('FLUXGATE_OVERRIDE_INVALID', `key ${message}`, { errors: [{ path: 'key', message }] })
  }

  async #rangeEntries(rule: RuleRef, generation: number): Promise<OverrideEntry[]> {
    const pairs = bytePairsReply(await this.#connection.call(this.#rangesKey, ['HGETALL', this.#rangesKey], true))
    const entries: OverrideEntry[] = []
    for (let i = 0; i < pairs.length; i += 2) {
      const parsed = parseRangeField(String(pairs[i]))
      if (parsed.generation !== generation || ruleField(parsed.rule) !== ruleField(rule)) continue
      const terms = decodeTerms(pairs[i + 1] as Buffer)
      if (!hasExpired(terms, this.#nowMs())) entries.push({ key: parsed.range, terms })
    }
    return entries
  }

  async #wrapErrors<T>(what: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw wrapRedisError(error, what)
    }
  }
}
