import { createHash } from 'node:crypto'
import { cellsOf, definitionOf, kindOf } from '../../algorithms/index.js'
import { algorithmTraits, takeHolds } from '../../core/algorithm-traits.js'
import type { BucketGroup } from '../../core/bucket-store.js'
import type { Calendar } from '../../core/calendar/calendar.js'
import { ticksPerMs } from '../../core/clock.js'
import { digestOfKey, escapeKeyPart, isLongKey, longestKey, specialInKey } from '../../core/keys/bounded-key.js'
import { type Band, maxFillTicks } from '../../core/rule.js'

/** A key that needs no escaping and is short in UTF-8, where a character has at most four bytes. */
export const plainKey = /^[^:{}%\s\p{Cc}\p{Cs}]{1,32}$/u

/**
 * The first part of the Redis keys of a rate limit key. The whole Redis key is `<prefix>:{<key>}:<abbreviation>`: one per rule and
 * rate limit key, with the buckets of all bands in its value. The rate limit key is the hash tag, so that all rules with the
 * same key share a cluster slot.
 */
export const bucketPrefix = (prefix: string, key: string): string =>
  `${prefix}:{${plainKey.test(key) ? key : hashTagOf(key)}}`

/** The hash tag of a key that is not plain: escaped, or its digest if it is long. */
export const hashTagOf = (key: string): string => (isLongKey(key) ? digestOfKey(key) : escaped(key))

/** How the buckets of a rule are stored. */
export interface GroupLayout {
  /** The Redis key after its `bucketPrefix`. */
  readonly suffix: string
  /** Identifies each band within the value of a Redis key: 24 bits. */
  readonly ids: readonly number[]
  /**
   * Per band, what the script needs to know: tag, capacity, tokens and window. The tag is the id and the algorithm. If the group
   * keeps the used fraction, the capacity is a list that also has the numbers of the definition.
   */
  readonly terms: readonly (number | readonly number[])[]
  /** True if a bucket is a log instead of a few numbers. */
  readonly hasLog: boolean
  /** The calendar of each band, if at least one band has one. */
  readonly calendars: readonly (Calendar | undefined)[] | undefined
  /** True if a bucket is a list of holds. */
  readonly hasHolds: boolean
  /** Milliseconds for which keys are kept after the buckets of this group are full, because the rule may refill them more slowly. */
  readonly keepMs: number
}

/** Returns a digest of at least eight bytes. */
export type Digest = (text: string) => Buffer

/** The layout of each group that has been used. */
export class Layouts {
  readonly byGroup = new WeakMap<BucketGroup, GroupLayout>()
  readonly #digest: Digest

  constructor(digest: Digest = sha256) {
    this.#digest = digest
  }

  of(group: BucketGroup): GroupLayout {
    return this.byGroup.get(group) ?? this.add(group)
  }

  /** Computes the layout of a group that is used for the first time. */
  add(group: BucketGroup): GroupLayout {
    const { bands, insteadOf } = group
    const ids = insteadOf === undefined ? this.#idsOf(group) : followingIds(this.of(insteadOf), bands.length)
    const layout = {
      suffix: insteadOf === undefined ? this.#abbreviation(group) : overrideSuffix(this.of(insteadOf), group),
      ids,
      terms: bands.flatMap((band, i) => {
        const tag = (ids[i] as number) * tagUnit + kindOf(band)
        const definition = definitionOf(band, group.definitions)
        return definition === undefined
          ? [tag, band.capacity, band.refillTokens, band.windowTicks]
          : [tag + hasDefinition, [band.capacity, ...this.#numbersOf(definition)], band.refillTokens, band.windowTicks]
      }),
      hasLog: bands.some((band) => cellsOf(band) === undefined && !algorithmTraits[band.algorithm].takesHolds),
      calendars: bands.some(({ calendar }) => calendar) ? bands.map(({ calendar }) => calendar) : undefined,
      hasHolds: takeHolds(bands),
      keepMs: keepMs(group),
    }
    this.byGroup.set(group, layout)
    return layout
  }

  /** The numbers of a definition. A calendar has a number in place of its window, above every window. */
  #numbersOf({ capacity, refillTokens, windowTicks, calendar }: Band): readonly number[] {
    if (calendar === undefined) return [capacity, refillTokens, windowTicks]
    const { unit, timeZone, month, day } = calendar
    const digest = this.#digest(JSON.stringify([unit, timeZone, month, day])).readUIntBE(0, calendarBytes)
    return [capacity, refillTokens, calendars + digest]
  }

  /** The end of the key of a ban. Bans outlive the generation of a rule. */
  banSuffix({ ruleSetId, ruleId }: BucketGroup): string {
    return `:${this.#digest(JSON.stringify([ruleSetId, ruleId]))
      .toString('base64url')
      .slice(0, banLength)}:ban`
  }

  /** 36 bits of a digest, because the name of a key takes more memory than its value. */
  #abbreviation({ ruleSetId, ruleId, generation }: BucketGroup): string {
    const digest = this.#digest(JSON.stringify([ruleSetId, ruleId, generation]))
    return `:${digest.toString('base64url').slice(0, abbreviationLength)}`
  }

  /**
   * The ids depend on the rule too: if two rules have the same abbreviation, their bands share a value and have buckets of their
   * own there. They do not depend on the order of the bands. Bands of a rule never have the same id.
   */
  #idsOf({ ruleSetId, ruleId, generation, bands }: BucketGroup): readonly number[] {
    const labels = bands.map(({ label }) => label)
    const ids = new Map<string, number>()
    const used = new Set<number>()
    for (const label of labels.toSorted()) {
      let attempt = 0
      let id: number
      do id = this.#digest(JSON.stringify([ruleSetId, ruleId, generation, label, attempt++])).readUIntBE(0, idBytes)
      while (used.has(id))
      used.add(id)
      ids.set(label, id)
    }
    return labels.map((label) => ids.get(label) as number)
  }
}

const abbreviationLength = 6
const banLength = 16
const idBytes = 3
const idCount = 2 ** (8 * idBytes)
/** The lowest byte of a tag is the number of the algorithm, and flags. */
const tagUnit = 256
/** The flag of a record that ends with its definition. */
const hasDefinition = 64
const calendars = 2 ** 47
const calendarBytes = 5

const sha256: Digest = (text) => createHash('sha256').update(text).digest()

/**
 * The script computes the same key and ids when it finds an override: the digest of the override follows the abbreviation of
 * the rule, and the ids follow that of the rule's first band.
 */
const overrideSuffix = ({ suffix }: GroupLayout, { generation, insteadOf }: BucketGroup): string =>
  suffix + generation.slice(insteadOf?.generation.length)

/** The longest time that a band of the rule needs to refill what it and the bands of a single call can take. */
function keepMs({ bands, rule }: BucketGroup): number {
  if (rule === undefined) return 0
  const most = Math.max(0, ...bands.map(({ capacity }) => capacity))
  const fillTicks = rule.bands.map(
    ({ capacity, refillTokens, windowTicks }) => Math.ceil((capacity + most) / refillTokens) * windowTicks,
  )
  return Math.ceil(Math.min(maxFillTicks, Math.max(0, ...fillTicks)) / ticksPerMs)
}

const followingIds = ({ ids: [first = 0] }: GroupLayout, count: number): readonly number[] =>
  Array.from({ length: count }, (_, i) => (first + i) % idCount)

export const escaped = escapeKeyPart

const plainBytes = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 && !specialInKey.test(String.fromCharCode(byte)) ? 1 : 0,
)

/** True if these bytes are a key that is used unchanged: nothing must be escaped, and it is not too long. */
export function isPlainIdentity(bytes: Buffer, from: number, to: number): boolean {
  if (to === from || to - from > longestKey) return false
  for (let at = from; at < to; at++) if (plainBytes[bytes[at] as number] === 0) return false
  return true
}
