import type { ReadDefinition } from './definition.js'
import { checkText, mistake, type Part, partBytes } from './entries.js'
import { behindPrefix, textBytes } from './ordered-bytes.js'

export interface FindQuery {
  /** The name of a field of kind `number`, `text`, `composite` or `tags`, in whose order records are found. */
  readonly by: string
  /** Of a composite field, what its first members are; of tags, the tag. */
  readonly equals?: readonly (string | number)[]
  /** Bounds of what comes next: from this one on, or from behind it. */
  readonly from?: string | number
  readonly above?: string | number
  /** Up to this one, or up to before it. */
  readonly to?: string | number
  readonly below?: string | number
  /** Texts that begin like this. */
  readonly prefix?: string
  /** Only records that have all of these tags, by field. */
  readonly tagged?: Readonly<Record<string, string | readonly string[]>>
  readonly order?: 'ascending' | 'descending'
  /** Default 20, at most 1 000. */
  readonly limit?: number
  /** Of the page before. */
  readonly cursor?: string | null | undefined
}

type Argument = string | Buffer

const names: Readonly<Record<keyof FindQuery, true>> = {
  by: true,
  equals: true,
  from: true,
  above: true,
  to: true,
  below: true,
  prefix: true,
  tagged: true,
  order: true,
  limit: true,
  cursor: true,
}

/** As page.lua takes it, behind the fingerprint. */
export function pageArguments(definition: ReadDefinition, query: FindQuery): Argument[] {
  if (typeof query !== 'object' || query === null) throw mistake('query', 'an object with by, the name of a field')
  // A misspelt bound would find everything.
  for (const name of Object.keys(query))
    if (!Object.hasOwn(names, name)) throw mistake(name, Object.keys(names).join(', '))
  const { by, tagged = {}, order = 'ascending', limit = 20, cursor } = query
  const number = definition.fields.findIndex(({ name }) => name === by)
  const field = definition.fields[number]
  if (field === undefined || field.kind === 'suggest') {
    const names = definition.fields.filter(({ kind }) => kind !== 'suggest').map(({ name }) => name)
    throw mistake('by', names.length === 0 ? 'nothing, because there are no fields' : names.join(', '))
  }
  if (order !== 'ascending' && order !== 'descending') throw mistake('order', 'ascending, descending')
  checkLimit(limit, 1_000)
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

export function checkLimit(limit: unknown, most: number): void {
  if (!Number.isSafeInteger(limit) || (limit as number) < 1 || (limit as number) > most)
    throw mistake('limit', `a whole number from 1 to ${most}`)
}

/** Where the set of a tag is, within a generation. */
export function tagSet({ fields }: ReadDefinition, name: string, tag: unknown): string {
  const number = fields.findIndex((field) => field.name === name && field.kind === 'tags')
  if (number < 0) throw mistake(`tagged.${name}`, 'the name of a field of tags')
  return `${number}:tag:${checkText(tag, `tagged.${name}`, 255)}`
}

function scoreBounds({ equals, from, above, to, below, prefix }: FindQuery): [string, string] {
  if (equals !== undefined || prefix !== undefined) throw mistake('equals, prefix', 'from, above, to, below')
  const score = (value: unknown): string => {
    if (typeof value !== 'number' || Number.isNaN(value)) throw mistake('from, above, to, below', 'numbers')
    return value === Number.POSITIVE_INFINITY ? '+inf' : value === Number.NEGATIVE_INFINITY ? '-inf' : String(value)
  }
  // The first bound is what is left out: everything below `from`, or everything up to `above`.
  const first = above !== undefined ? score(above) : `(${from === undefined ? '-inf' : score(from)}`
  const last = below !== undefined ? `(${score(below)}` : to === undefined ? '+inf' : score(to)
  return [first, last]
}

const opened = (sign: '[' | '(', bytes: Buffer): Buffer => Buffer.concat([Buffer.from(sign), bytes])

function placeBounds({ equals = [], from, above, to, below, prefix }: FindQuery, parts: number): [Argument, Argument] {
  const isBounded = [from, above, to, below, prefix].some((bound) => bound !== undefined)
  if (!Array.isArray(equals) || equals.length > parts - (isBounded ? 1 : 0))
    throw mistake('equals', `a list of up to ${parts - (isBounded ? 1 : 0)}`)
  const start = Buffer.concat(equals.map((part) => partBytes(checkPart(part, 'equals'))))
  /** With its end, or up to where others that begin alike would go on. */
  const whole = (part: Part): Buffer => Buffer.concat([start, partBytes(checkPart(part, 'from, above, to, below'))])
  const open = (part: Part): Buffer =>
    typeof part === 'number' ? whole(part) : Buffer.concat([start, textBytes(checkText(part, 'from, below', 512))])
  const after = (bytes: Buffer, sign: '[' | '('): Argument => {
    const behind = behindPrefix(bytes)
    return behind === undefined ? '+' : opened(sign, behind)
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
 * The bounds of what follows the cursor: the tighter of bound and cursor, because a cursor may be forged, or of another query.
 * Compared here, and by bytes: texts in Lua are compared by the locale of the server. Scores are compared by the script.
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
  // '+' is behind everything.
  if (order === 'ascending') return [compared(first) >= 0 ? seen : first, last]
  return [first, compared(last) < 0 ? seen : last]
}

function checkPart(part: unknown, place: string): Part {
  if (typeof part === 'number' && !Number.isNaN(part)) return part
  return checkText(part, place, 512)
}

/** A cursor belongs to a field and an order: with another one it would lead somewhere. */
export const cursorMark = (field: number | string, order: string): string =>
  `${field}${order === 'ascending' ? '+' : '-'}`

/** Where the last page has ended, as (score, member): what is put in or taken out before it moves nothing. */
export const writeCursor = (mark: string, score: Buffer, member: Buffer): string =>
  Buffer.concat([Buffer.from(`${mark}:${score}:`), member]).toString('base64url')

function readCursor(cursor: unknown, mark: string): [string, Buffer] {
  if (cursor === undefined || cursor === null) return ['', Buffer.alloc(0)]
  const bytes = Buffer.from(typeof cursor === 'string' ? cursor : '', 'base64url')
  const [start = '', score = ''] = /^\d+[+-]:(-?[\d.e+-]+|-?inf):/.exec(bytes.toString('latin1')) ?? []
  if (start === '' || !start.startsWith(`${mark}:`) || Number.isNaN(Number(score)))
    throw mistake('cursor', 'what find has given for the same field in the same order')
  return [score, bytes.subarray(start.length)]
}
