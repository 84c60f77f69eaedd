import { FluxGateError } from '../../../core/errors.js'
import { inUtf8Order } from '../../../core/keys/utf8-order.js'
import { byKey, type EntryPage, type EntryQuery, type OverrideEntry } from '../../../core/overrides/override-storage.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { bytesReply, integerReply, unexpectedReply } from '../../../redis/client/replies.js'
import { decodeTerms } from './encoding.js'
import { slotCount } from './keys.js'

/**
 * Reads hashes until enough overrides are found, and deletes expired ones on the way.
 * KEYS  hashes
 * ARGV  pattern of the keys or '', number of overrides wanted, current time in ms
 * Returns { number of hashes read, { for each override: index of its hash, key, value } }
 */
const pageScript = `local found, pattern, limit, nowMs = {}, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for index, hash in ipairs(KEYS) do
  local pairs, cursor = {}, '0'
  if pattern == '' then pairs = redis.call('HGETALL', hash)
  else
    repeat
      local part = redis.call('HSCAN', hash, cursor, 'MATCH', pattern, 'COUNT', 1000)
      cursor = part[1]
      for _, text in ipairs(part[2]) do pairs[#pairs + 1] = text end
    until cursor == '0'
  end
  for i = 1, #pairs, 2 do
    local value = pairs[i + 1]
    if string.byte(value) % 16 >= 8 and struct.unpack('<I6', value, 2) <= nowMs then redis.call('HDEL', hash, pairs[i])
    else
      found[#found + 1] = index
      found[#found + 1] = pairs[i]
      found[#found + 1] = value
    end
  end
  if #found >= 3 * limit then return { index, found } end
end
return { #KEYS, found }`

/** Bounded, because Redis serves no other client during a call. */
const hashesPerCall = 64
const concurrentCalls = 4
/** On a cluster, each call covers one hash. */
const concurrentClusterCalls = 256

export interface OverridePagesOptions {
  readonly hashOf: (slot: number) => string
  readonly ranges: () => Promise<readonly OverrideEntry[]>
  readonly nowMs: number
}

/** The position of an override in the listing. */
interface Position {
  /** `rangeSlot` for a range. */
  readonly slot: number
  readonly key: string
}

type FoundEntry = OverrideEntry & Position

/** Ranges precede all slots. */
const rangeSlot = -1

/**
 * Lists overrides page by page: first the ranges, then slot by slot, each sorted by key. A page therefore reads only a few hashes,
 * even with a million overrides. With a prefix it reads hashes until the page is full, in small calls.
 */
export class OverridePages {
  readonly #connection: RedisConnection
  readonly #options: OverridePagesOptions

  constructor(connection: RedisConnection, options: OverridePagesOptions) {
    this.#connection = connection
    this.#options = options
  }

  async read({ prefix, after, limit }: EntryQuery): Promise<EntryPage> {
    const start = after === '' ? { slot: rangeSlot, key: '' } : parseCursor(after)
    const page = start.slot === rangeSlot ? await this.#rangesAfter(start, prefix) : []
    for (let slot = Math.max(0, start.slot); slot < slotCount && page.length <= limit; ) {
      const { entries, nextSlot } = await this.#search(slot, prefix, limit + 1 - page.length)
      page.push(...entries.filter((entry) => isAfter(entry, start)))
      slot = nextSlot
    }
    const last = page.length > limit ? page[limit - 1] : undefined
    const entries = page.slice(0, limit).map(({ key, terms }) => ({ key, terms }))
    return { entries: entries.sort(byKey), next: last && `${last.slot}:${last.key}` }
  }

  async #rangesAfter(start: Position, prefix: string): Promise<FoundEntry[]> {
    const ranges = (await this.#options.ranges()).map((range) => ({ ...range, slot: rangeSlot }))
    return ranges.filter((range) => range.key.startsWith(prefix) && isAfter(range, start)).sort(byKey)
  }

  /** Reads slots with concurrent calls. Returns the entries in order and the slot to continue from. */
  async #search(from: number, prefix: string, limit: number): Promise<SearchResult> {
    const { isCluster } = this.#connection
    const size = isCluster ? 1 : hashesPerCall
    const maxCalls = isCluster ? concurrentClusterCalls : concurrentCalls
    const starts: number[] = []
    for (let slot = from; slot < slotCount && starts.length < maxCalls; slot += size) starts.push(slot)
    const results = await Promise.all(
      starts.map((start) => this.#readHashes(start, Math.min(start + size, slotCount), prefix, limit)),
    )
    const found: FoundEntry[] = []
    for (const [i, { entries, nextSlot }] of results.entries()) {
      found.push(...entries)
      const nextStart = starts[i + 1]
      // A call that stops early has found enough, and the results after it would leave a gap.
      if (nextStart === undefined || nextSlot < nextStart || found.length >= limit) return { entries: found, nextSlot }
    }
    return { entries: found, nextSlot: slotCount }
  }

  async #readHashes(from: number, to: number, prefix: string, limit: number): Promise<SearchResult> {
    const { hashOf, nowMs } = this.#options
    const hashes = Array.from({ length: to - from }, (_, i) => hashOf(from + i))
    const pattern = prefix === '' ? '' : `${prefix.replaceAll(/[*?[\]\\]/g, '\\$&')}*`
    const command = ['EVAL', pageScript, String(hashes.length), ...hashes, pattern, String(limit), String(nowMs)]
    const reply = await this.#connection.call(hashes[0] as string, command, true)
    if (!Array.isArray(reply) || !Array.isArray(reply[1]) || reply[1].length % 3 !== 0)
      throw unexpectedReply('a page of overrides', reply)
    const [hashesRead, items] = [integerReply(reply[0]), reply[1] as readonly unknown[]]
    const byPosition = new Map<string, FoundEntry>()
    for (let i = 0; i < items.length; i += 3) {
      const [slot, key] = [from + integerReply(items[i]) - 1, bytesReply(items[i + 1]).toString()]
      // HSCAN may return a field of a large hash twice.
      byPosition.set(`${slot}:${key}`, { slot, key, terms: decodeTerms(bytesReply(items[i + 2])) })
    }
    const entries = [...byPosition.values()].sort((one, other) => one.slot - other.slot || byKey(one, other))
    return { entries, nextSlot: from + hashesRead }
  }
}

interface SearchResult {
  readonly entries: readonly FoundEntry[]
  readonly nextSlot: number
}

const isAfter = (one: Position, other: Position): boolean =>
  one.slot > other.slot || (one.slot === other.slot && (other.key === '' || inUtf8Order(one.key, other.key) > 0))

function parseCursor(after: string): Position {
  const end = after.indexOf(':')
  const slot = Number(end < 1 ? Number.NaN : after.slice(0, end))
  if (Number.isInteger(slot) && slot >= rangeSlot && slot < slotCount) return { slot, key: after.slice(end + 1) }
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    'cursor is invalid. Use the cursor of the previous page unchanged, or omit it for the first page.',
  )
}
