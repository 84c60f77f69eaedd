import { createHash } from 'node:crypto'
import { FluxGateError } from '../../core/errors.js'

/** A number, in the order of size. Records without one are not in it. */
export interface NumberField {
  readonly kind: 'number'
  /** Which member of a record it is; by default the one of the same name. */
  readonly from?: string
}

/** A text, in the order of its code points. */
export interface TextField {
  readonly kind: 'text'
  readonly from?: string
}

/** Several members of a record, one after the other: by category, and within a category by price. One of them may be a list. */
export interface CompositeField {
  readonly kind: 'composite'
  readonly of: readonly string[]
}

/** A list of words, or one: each is a set of records, in which chance can pick. */
export interface TagsField {
  readonly kind: 'tags'
  readonly from?: string
}

/** A text or a list of texts to be completed. How often each occurs counts, or the sum of another member of the records. */
export interface SuggestField {
  readonly kind: 'suggest'
  readonly from?: string
  /** A member that holds a whole number of at least 1; by default every record counts 1. */
  readonly weight?: string
}

export type IndexField = NumberField | TextField | CompositeField | TagsField | SuggestField

export interface IndexDefinition {
  /** Letters, digits, `. _ - :`; up to 64. */
  readonly name: string
  readonly fields?: Readonly<Record<string, IndexField>>
  /** How many of the records written last are listed by `recent`; default 100, at most 1 000. */
  readonly recent?: number
  /** One more, and one has to go; default 1 000 000. */
  readonly maxRecords?: number
  /** Which one: the one that was written longest ago, or the one with the least in a field of numbers. */
  readonly evict?: 'oldest' | { readonly least: string }
}

/** A definition, read and found to be in order. The number of a field is its place in the list. */
export interface ReadDefinition {
  readonly name: string
  readonly fields: readonly (IndexField & { readonly name: string })[]
  readonly recent: number
  readonly maxRecords: number
  /** The number of a field, or empty for the oldest. */
  readonly least: string
  /** The same for indexes that can share their data. */
  readonly fingerprint: string
}

export const mostFields = 32
const allowedName = /^[\w.:-]{1,64}$/

const invalid = (place: string, allowed: string): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${place}: not understood; allowed: ${allowed}.`)

export function readDefinition(definition: IndexDefinition): ReadDefinition {
  const { name, fields: given = {}, recent = 100, maxRecords = 1_000_000, evict = 'oldest', ...others } = definition
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalid(unknown, 'name, fields, recent, maxRecords, evict')
  if (typeof name !== 'string' || !allowedName.test(name)) throw invalid('name', '1 to 64 of letters, digits, . _ - :')
  if (!isWhole(recent, 0, 1_000)) throw invalid('recent', 'a whole number from 0 to 1000')
  if (!isWhole(maxRecords, 1, 100_000_000)) throw invalid('maxRecords', 'a whole number from 1 to 100000000')
  const fields = Object.entries(given).map(([field, value]) => ({ ...readField(field, value), name: field }))
  if (fields.length > mostFields) throw invalid('fields', `up to ${mostFields} fields`)
  const least =
    evict === 'oldest' ? -1 : fields.findIndex((field) => field.name === evict.least && field.kind === 'number')
  if (evict !== 'oldest' && least < 0)
    throw invalid('evict', '"oldest", or { least } with the name of a field of numbers')
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([fields.map((field) => Object.entries(field).sort(byName)), recent]))
    .digest('hex')
    .slice(0, 16)
  return { name, fields, recent, maxRecords, least: least < 0 ? '' : String(least), fingerprint }
}

const byName = ([one]: [string, unknown], [other]: [string, unknown]): number => (one < other ? -1 : 1)

const isWhole = (value: unknown, from: number, to: number): boolean =>
  Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to

const membersOfKind: Readonly<Record<IndexField['kind'], readonly string[]>> = {
  number: ['from'],
  text: ['from'],
  tags: ['from'],
  suggest: ['from', 'weight'],
  composite: ['of'],
}

function readField(name: string, field: IndexField): IndexField {
  const place = `fields.${name}`
  if (!allowedName.test(name)) throw invalid(place, 'a name of letters, digits, . _ - :')
  const kinds = Object.keys(membersOfKind).join(', ')
  if (typeof field !== 'object' || field === null || !Object.hasOwn(membersOfKind, field.kind))
    throw invalid(place, `an object whose kind is one of ${kinds}`)
  const { kind, ...members } = field
  for (const [member, value] of Object.entries(members)) {
    if (!membersOfKind[kind].includes(member)) throw invalid(`${place}.${member}`, membersOfKind[kind].join(', '))
    const isList = member === 'of' && Array.isArray(value) && value.length >= 1 && value.length <= 8
    const names: readonly unknown[] = isList ? value : [value]
    if ((member === 'of') !== isList || names.some((each) => typeof each !== 'string' || each === ''))
      throw invalid(`${place}.${member}`, member === 'of' ? '1 to 8 names of members' : 'the name of a member')
  }
  if (kind === 'composite' && field.of === undefined) throw invalid(`${place}.of`, '1 to 8 names of members')
  return field
}
