import { FluxGateError } from '../../../core/errors.js'
import { inUtf8Order } from '../../../core/keys/utf8-order.js'
import { byKey, type EntryPage, type EntryQuery, type OverrideEntry } from '../../../core/overrides/override-book.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { bytesReply, integerReply, unexpectedReply } from '../../../redis/client/replies.js'
import { slots } from './hashes.js'
import { decodeTerms } from './value.js'

/**
 * Looks through hashes until there are enough: how many it has looked through, and the place, the key and the override of
 * each that was found. What has expired is forgotten in passing. Redis itself compares the beginnings of keys.
 */
const pageScript = `local found, pattern, most, nowMs = {}, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for place, hash in ipairs(KEYS) do
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
      found[#found + 1] = place
      found[#found + 1] = pairs[i]
      found[#found + 1] = value
    end
  end
  if #found >= 3 * most then return { place, found } end
end
return { #KEYS, found }`

/** As many hashes as are looked through in one call, so that nobody else waits long, and how many calls are under way. */
const hashesAtOnce = 64
const callsAtOnce = 4
/** On a cluster each hash is in another slot. */
const callsAtOnceOnCluster = 256

export interface OverridePagesOptions {
  readonly hashOf: (slot: number) => string
  readonly ranges: () => Promise<readonly OverrideEntry[]>
  readonly nowMs: number
}

interface Found extends OverrideEntry {
  /** Below 0: a range. */
  readonly slot: number
}

const ofRanges = -1

/**
 * Overrides page by page: first the ranges, then slot by slot, each in the order of the keys. So a page looks at a few hashes
 * only, of a million overrides too; and one that is given a prefix looks on until it is full, a little at a time.
 */
export class OverridePages {
  readonly #connection: RedisConnection
  readonly #options: OverridePagesOptions

  constructor(connection: RedisConnection, options: OverridePagesOptions) {
    this.#connection = connection
    this.#options = options
  }

  async read({ prefix, after, limit }: EntryQuery): Promise<EntryPage> {
    const start = after === '' ? { slot: ofRanges, key: '' } : placeOf(after)
    const page = start.slot === ofRanges ? await this.#rangesBehind(start, prefix) : []
    for (let slot = Math.max(0, start.slot); slot < slots && page.length <= limit; ) {
      const { found, until } = await this.#search(slot, prefix, limit + 1 - page.length)
      page.push(...found.filter((one) => isBehind(one, start)))
      slot = until
    }
    const last = page.length > limit ? page[limit - 1] : undefined
    const entries = page.slice(0, limit).map(({ key, terms }) => ({ key, terms }))
    return { entries: entries.sort(byKey), next: last && `${last.slot}:${last.key}` }
  }

  async #rangesBehind(start: Place, prefix: string): Promise<Found[]> {
    const ranges = (await this.#options.ranges()).map((range) => ({ ...range, slot: ofRanges }))
    return ranges.filter((one) => one.key.startsWith(prefix) && isBehind(one, start)).sort(byKey)
  }

  /** From a slot on: those that were found, in order, and the slot to go on from. */
  async #search(from: number, prefix: string, most: number): Promise<{ found: Found[]; until: number }> {
    const { isCluster } = this.#connection
    const size = isCluster ? 1 : hashesAtOnce
    const starts: number[] = []
    for (
      let slot = from;
      slot < slots && starts.length < (isCluster ? callsAtOnceOnCluster : callsAtOnce);
      slot += size
    )
      starts.push(slot)
    const replies = await Promise.all(
      starts.map((start) => this.#look(start, Math.min(start + size, slots), prefix, most)),
    )
    const found: Found[] = []
    for (const [i, { entries, until }] of replies.entries()) {
      found.push(...entries)
      // It has stopped because there were enough.
      const next = starts[i + 1]
      if (next === undefined || until < next || found.length >= most) return { found, until }
    }
    return { found, until: slots }
  }

  async #look(from: number, to: number, prefix: string, most: number): Promise<{ entries: Found[]; until: number }> {
    const { hashOf, nowMs } = this.#options
    const hashes = Array.from({ length: to - from }, (_, i) => hashOf(from + i))
    const pattern = prefix === '' ? '' : `${prefix.replaceAll(/[*?[\]\\]/g, '\\$&')}*`
    const command = ['EVAL', pageScript, String(hashes.length), ...hashes, pattern, String(most), String(nowMs)]
    const reply = await this.#connection.call(hashes[0] as string, command, true)
    if (!Array.isArray(reply) || !Array.isArray(reply[1]) || reply[1].length % 3 !== 0)
      throw unexpectedReply('a page of overrides', reply)
    const [looked, items] = [integerReply(reply[0]), reply[1] as readonly unknown[]]
    const bySlotAndKey = new Map<string, Found>()
    for (let i = 0; i < items.length; i += 3) {
      const [slot, key] = [from + integerReply(items[i]) - 1, bytesReply(items[i + 1]).toString()]
      // A large hash may tell the same twice.
      bySlotAndKey.set(`${slot}:${key}`, { slot, key, terms: decodeTerms(bytesReply(items[i + 2])) })
    }
    const entries = [...bySlotAndKey.values()].sort((one, other) => one.slot - other.slot || byKey(one, other))
    return { entries, until: from + looked }
  }
}

type Place = Pick<Found, 'slot' | 'key'>

const isBehind = (one: Place, other: Place): boolean =>
  one.slot > other.slot || (one.slot === other.slot && (other.key === '' || inUtf8Order(one.key, other.key) > 0))

function placeOf(after: string): Place {
  const end = after.indexOf(':')
  const slot = Number(end < 1 ? Number.NaN : after.slice(0, end))
  if (Number.isInteger(slot) && slot >= ofRanges && slot < slots) return { slot, key: after.slice(end + 1) }
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    'cursor: found something that no page ended with; allowed: the cursor of the page before, as it was.',
  )
}
