import { anyValue, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { argumentInvalid, checkArgument } from '../../validation/options.js'
import { object } from '../../validation/structures.js'
import type { ReadDefinition } from './definition.js'
import { checkText, entryIssue, type Part, partBytes } from './entries.js'
import { endOfPrefix, textBytes } from './ordered-bytes.js'

/** A query of `SearchIndex.find`. Bounds apply to the field `by`, in a composite field to the member after `equals`. */
export interface FindQuery {
  /** The field that orders the result. Its kind is `number`, `text`, `composite` or `tags`. */
  readonly by: string
  /** For a composite field, the values of its first members. For a tags field, the tag. */
  readonly equals?: readonly (string | number)[]
  /** The lower bound, inclusive. */
  readonly from?: string | number
  /** The lower bound, exclusive. Takes precedence over `from`. */
  readonly above?: string | number
  /** The upper bound, inclusive. */
  readonly to?: string | number
  /** The upper bound, exclusive. Takes precedence over `to`. */
  readonly below?: string | number
  /** Finds texts with this prefix. Replaces all bounds. Not for number fields. */
  readonly prefix?: string
  /** Only finds records that have all of these tags, listed by tags field. */
  readonly tagged?: Readonly<Record<string, string | readonly string[]>>
  /** Default: `ascending`. */
  readonly order?: 'ascending' | 'descending'
  /** The maximum number of records on the page, from 1 to 1,000. Default: 20. */
  readonly limit?: number
  /** The `cursor` of the previous page, for the same field and order. */
  readonly cursor?: string | null | undefined
}

type Argument = string | Buffer

/** Bounds, tags and cursor depend on the field, so they are validated with it. */
const findQuery = object(
  { by: text },
  {
    equals: anyValue,
    from: anyValue,
    above: anyValue,
    to: anyValue,
    below: anyValue,
    prefix: anyValue,
    tagged: anyValue,
    order: oneOf(['ascending', 'descending']),
    limit: wholeNumber(1, 1_000),
    cursor: anyValue,
  },
  { allowed: 'an object with the name of a field in by' },
)

/** Returns the arguments of page.lua that follow the fingerprint. */
export function pageArguments(definition: ReadDefinition, query: FindQuery): Argument[] {
  // Also rejects a misspelt bound, which would otherwise return all records.
  checkArgument('query', query, findQuery)
  const { by, tagged = {}, order = 'ascending', limit = 20, cursor } = query
  const number = definition.fields.findIndex(({ name }) => name === by)
  const field = definition.fields[number]
  if (field === undefined || field.kind === 'suggest') {
    const names = definition.fields.filter(({ kind }) => kind !== 'suggest').map(({ name }) => name)
    const allowed = names.length === 0 ? 'a field, but the index has none to find by' : `one of ${names.join(', ')}`
    throw argumentInvalid('query.by', by, allowed)
  }
  const seen = readCursor(cursor, cursorMark(number, order))
  const bounds =
    field.kind === 'number' ? scoreBounds(query) : behindCursor(placeBounds(query, partsOf(field)), order, seen)
  const filters = Object.entries(tagged).flatMap(([name, tags]) =>
    [tags].flat().map((tag) => tagSet(definition, name, tag)),
  )
  const kind = field.kind === 'number' ? 'scores' : 'places'
  return [String(number), kind, order, String(limit), ...bounds, ...seen, ...filters]
}

const partsOf = (field: ReadDefinition['fields'][number]): number => (field.kind === 'composite' ? field.of.length : 1)

/** The key of a tag's set, without the generation. */
export function tagSet({ fields }: ReadDefinition, name: string, tag: unknown): string {
  const number = fields.findIndex((field) => field.name === name && field.kind === 'tags')
  if (number < 0) throw entryIssue(`tagged.${name}`, 'a tags field of the index')
  return `${number}:tag:${checkText(tag, `tagged.${name}`, 255)}`
}

function scoreBounds({ equals, from, above, to, below, prefix }: FindQuery): [string, string] {
  if (equals !== undefined || prefix !== undefined)
    throw entryIssue('equals and prefix', 'omitted for a number field. Use from, above, to or below')
  const score = (value: unknown): string => {
    if (typeof value !== 'number' || Number.isNaN(value)) throw entryIssue('from, above, to and below', 'numbers')
    return value === Number.POSITIVE_INFINITY ? '+inf' : value === Number.NEGATIVE_INFINITY ? '-inf' : String(value)
  }
  // The first bound counts the records to skip: all below `from`, or all up to `above`.
  const first = above !== undefined ? score(above) : `(${from === undefined ? '-inf' : score(from)}`
  const last = below !== undefined ? `(${score(below)}` : to === undefined ? '+inf' : score(to)
  return [first, last]
}

const opened = (sign: '[' | '(', bytes: Buffer): Buffer => Buffer.concat([Buffer.from(sign), bytes])

function placeBounds({ equals = [], from, above, to, below, prefix }: FindQuery, parts: number): [Argument, Argument] {
  const isBounded = [from, above, to, below, prefix].some((bound) => bound !== undefined)
  if (!Array.isArray(equals) || equals.length > parts - (isBounded ? 1 : 0))
    throw entryIssue('equals', `a list of up to ${parts - (isBounded ? 1 : 0)} values`)
  const start = Buffer.concat(equals.map((part) => partBytes(checkPart(part, 'equals'))))
  /** `whole` includes the terminator of a text. `open` omits it, so that longer texts with the same start sort after it. */
  const whole = (part: Part): Buffer => Buffer.concat([start, partBytes(checkPart(part, 'from, above, to and below'))])
  const open = (part: Part): Buffer =>
    typeof part === 'number' ? whole(part) : Buffer.concat([start, textBytes(checkText(part, 'from and below', 512))])
  const after = (bytes: Buffer, sign: '[' | '('): Argument => {
    const end = endOfPrefix(bytes)
    return end === undefined ? '+' : opened(sign, end)
  }
  if (prefix !== undefined) {
    const begun = Buffer.concat([start, textBytes(checkText(prefix, 'prefix', 512))])
    return [opened('[', begun), after(begun, '(')]
  }
  const first = above !== undefined ? after(whole(above), '[') : opened('[', from === undefined ? start : open(from))
  const last = below !== undefined ? opened('(', open(below)) : after(to === undefined ? start : whole(to), '(')
  return [first, last]
}

/**
 * Narrows the bounds to the records after the cursor. The tighter of bound and cursor applies, because a cursor may be
 * forged or belong to another query. The comparison is by bytes and done here, because Lua compares strings by the locale of
 * the server. The script compares scores.
 */
function behindCursor(
  [first, last]: [Argument, Argument],
  order: NonNullable<FindQuery['order']>,
  [score, member]: [string, Buffer],
): [Argument, Argument] {
  if (score === '') return [first, last]
  const seen = opened('(', member)
  const compared = (bound: Argument): number =>
    typeof bound === 'string' ? -1 : Buffer.compare(member, bound.subarray(1))
  // '+' sorts after everything.
  if (order === 'ascending') return [compared(first) >= 0 ? seen : first, last]
  return [first, compared(last) < 0 ? seen : last]
}

function checkPart(part: unknown, place: string): Part {
  if (typeof part === 'number' && !Number.isNaN(part)) return part
  return checkText(part, place, 512)
}

/** Ties a cursor to a field and an order. With others, it would point to an arbitrary position. */
export const cursorMark = (field: number | string, order: string): string =>
  `${field}${order === 'ascending' ? '+' : '-'}`

/** Encodes the end of a page as (score, member), so that records inserted or removed before it do not shift later pages. */
export const writeCursor = (mark: string, score: Buffer, member: Buffer): string =>
  Buffer.concat([Buffer.from(`${mark}:${score}:`), member]).toString('base64url')

function readCursor(cursor: unknown, mark: string): [string, Buffer] {
  if (cursor === undefined || cursor === null) return ['', Buffer.alloc(0)]
  const bytes = Buffer.from(typeof cursor === 'string' ? cursor : '', 'base64url')
  const [start = '', score = ''] = /^\d+[+-]:(-?[\d.e+-]+|-?inf):/.exec(bytes.toString('latin1')) ?? []
  if (start === '' || !start.startsWith(`${mark}:`) || Number.isNaN(Number(score)))
    throw entryIssue('cursor', 'a cursor that find returned for the same field and order')
  return [score, bytes.subarray(start.length)]
}
