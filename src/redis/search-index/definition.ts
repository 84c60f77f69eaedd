import { createHash } from 'node:crypto'
import { FluxGateError } from '../../core/errors.js'

/** Indexes a number in numeric order. Records without the member are not in the index of this field. */
export interface NumberField {
  readonly kind: 'number'
  /** The member of the record. Default: the member with the name of the field. */
  readonly from?: string
}

/** Indexes a string in code point order. */
export interface TextField {
  readonly kind: 'text'
  /** The member of the record. Default: the member with the name of the field. */
  readonly from?: string
}

/**
 * Indexes several members in sequence, such as by category and then by price. A member may be a list; each combination is
 * indexed, up to 64 per record.
 */
export interface CompositeField {
  readonly kind: 'composite'
  /** The names of 1 to 8 members, most significant first. */
  readonly of: readonly string[]
}

/** Indexes one tag or a list of up to 64 tags. Each tag is a set of records, which `sample` can pick from. */
export interface TagsField {
  readonly kind: 'tags'
  /** The member of the record. Default: the member with the name of the field. */
  readonly from?: string
}

/** Indexes one term or a list of up to 64 terms for prefix completion. Terms are ranked by the sum of their weights. */
export interface SuggestField {
  readonly kind: 'suggest'
  /** The member of the record. Default: the member with the name of the field. */
  readonly from?: string
  /** The member with the weight of the record: an integer from 1 to 1 000 000 000. Default: every record has weight 1. */
  readonly weight?: string
}

/** An indexed field. `kind` selects the type of index. */
export type IndexField = NumberField | TextField | CompositeField | TagsField | SuggestField

/** The definition of a search index. All processes that use an index must have the same fields and `recent`. */
export interface IndexDefinition {
  /** The name of the index: 1 to 64 letters, digits and `. _ - :`. */
  readonly name: string
  /** Up to 32 indexed fields by name. */
  readonly fields?: Readonly<Record<string, IndexField>>
  /** The number of last written records that `recent` lists, from 0 to 1 000. Default: 100. */
  readonly recent?: number
  /** The maximum number of records. Writing another record evicts one. Default: 1 000 000. */
  readonly maxRecords?: number
  /** Which record is evicted: the one written longest ago, or the one with the smallest value of a number field. */
  readonly evict?: 'oldest' | { readonly least: string }
}

/** A validated definition. The number of a field is its position in `fields`. */
export interface ReadDefinition {
  readonly name: string
  readonly fields: readonly (IndexField & { readonly name: string })[]
  readonly recent: number
  readonly maxRecords: number
  /** The number of the field whose smallest value is evicted, or an empty string to evict the oldest record. */
  readonly least: string
  /** Equal for definitions that can share their data. */
  readonly fingerprint: string
}

export const mostFields = 32
const allowedName = /^[\w.:-]{1,64}$/

const invalid = (place: string, allowed: string): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${place} must be ${allowed}.`)

const unknown = (place: string, allowed: readonly string[]): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `Unknown option ${place}. Use one of ${allowed.join(', ')}.`)

const definitionOptions = ['name', 'fields', 'recent', 'maxRecords', 'evict']

export function readDefinition(definition: IndexDefinition): ReadDefinition {
  const {
    name,
    fields: fieldOptions = {},
    recent = 100,
    maxRecords = 1_000_000,
    evict = 'oldest',
    ...others
  } = definition
  const [other] = Object.keys(others)
  if (other !== undefined) throw unknown(other, definitionOptions)
  if (typeof name !== 'string' || !allowedName.test(name)) throw invalid('name', '1 to 64 letters, digits, and . _ - :')
  if (!isWhole(recent, 0, 1_000)) throw invalid('recent', 'a whole number from 0 to 1000')
  if (!isWhole(maxRecords, 1, 100_000_000)) throw invalid('maxRecords', 'a whole number from 1 to 100000000')
  const fields = Object.entries(fieldOptions).map(([field, value]) => ({ ...readField(field, value), name: field }))
  if (fields.length > mostFields) throw invalid('fields', `an object with up to ${mostFields} fields`)
  const least =
    evict === 'oldest' ? -1 : fields.findIndex((field) => field.name === evict.least && field.kind === 'number')
  if (evict !== 'oldest' && least < 0) throw invalid('evict', '"oldest", or { least } with the name of a number field')
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
  if (!allowedName.test(name)) throw invalid(place, 'named with 1 to 64 letters, digits, and . _ - :')
  const kinds = Object.keys(membersOfKind).join(', ')
  if (typeof field !== 'object' || field === null || !Object.hasOwn(membersOfKind, field.kind))
    throw invalid(place, `an object whose kind is one of ${kinds}`)
  const { kind, ...members } = field
  for (const [member, value] of Object.entries(members)) {
    if (!membersOfKind[kind].includes(member)) throw unknown(`${place}.${member}`, membersOfKind[kind])
    const isList = member === 'of' && Array.isArray(value) && value.length >= 1 && value.length <= 8
    const names: readonly unknown[] = isList ? value : [value]
    if ((member === 'of') !== isList || names.some((each) => typeof each !== 'string' || each === ''))
      throw invalid(`${place}.${member}`, member === 'of' ? 'a list of 1 to 8 member names' : 'the name of a member')
  }
  if (kind === 'composite' && field.of === undefined) throw invalid(`${place}.of`, 'a list of 1 to 8 member names')
  return field
}
