import { createHash } from 'node:crypto'
import { longestWaitMs } from '../../core/range.js'
import { isObject } from '../../validation/fields.js'
import { placeOf } from '../../validation/issues.js'
import { type Kinds, readValue, structured, wrongValue } from '../../validation/kind.js'
import { codeValue, keyPrefix, millisecondsBetween, oneOf, textMatching, wholeNumber } from '../../validation/kinds.js'
import { argumentInvalid } from '../../validation/options.js'
import { list, object } from '../../validation/structures.js'

/** Indexes a number in numeric order. Records without the member are not in the index of this field. */
export interface NumberField {
  /** Selects an index of numbers. */
  readonly kind: 'number'
  /** The member of the record. Default: the member with the name of the field. */
  readonly from?: string
}

/** Indexes a string in code point order. */
export interface TextField {
  /** Selects an index of strings. */
  readonly kind: 'text'
  /** The member of the record. Default: the member with the name of the field. */
  readonly from?: string
}

/**
 * Indexes several members in sequence, such as by category and then by price. A member may be a list; each combination is
 * indexed, up to 64 per record.
 */
export interface CompositeField {
  /** Selects an index of combinations. */
  readonly kind: 'composite'
  /** The names of 1 to 8 members, most significant first. */
  readonly of: readonly string[]
}

/** Indexes one tag or a list of up to 64 tags. Each tag is a set of records, which `sample` can pick from. */
export interface TagsField {
  /** Selects an index of tags. */
  readonly kind: 'tags'
  /** The member of the record. Default: the member with the name of the field. */
  readonly from?: string
}

/** Indexes one term or a list of up to 64 terms for prefix completion. Terms are ranked by the sum of their weights. */
export interface SuggestField {
  /** Selects an index for prefix completion. */
  readonly kind: 'suggest'
  /** The member of the record. Default: the member with the name of the field. */
  readonly from?: string
  /** The member with the weight of the record: an integer from 1 to 1,000,000,000. Default: every record has weight 1. */
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
  /** The number of last written records that `recent` lists, from 0 to 1,000. Default: 100. */
  readonly recent?: number
  /** The maximum number of records. Writing another record evicts one. Default: 1,000,000. */
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

const fieldName = textMatching('a name of 1 to 64 letters, digits, and . _ - :', /^[\w.:-]{1,64}$/)
const member = textMatching('the name of a member', /./s)
const from = { from: member }

/** The members of a field by its kind: required ones, then optional ones. */
const fieldMembers: Readonly<Record<IndexField['kind'], readonly [required: Kinds, optional: Kinds]>> = {
  number: [{}, from],
  text: [{}, from],
  tags: [{}, from],
  suggest: [{}, { ...from, weight: member }],
  composite: [{ of: list(member, { max: 8 }) }, {}],
}
const fieldKind = oneOf(Object.keys(fieldMembers) as IndexField['kind'][])

const field = structured<IndexField>(`an object whose kind is ${fieldKind.allowed}`, {}, (value, path, issues) => {
  const kind = isObject(value) ? fieldKind.parse(value.kind) : undefined
  if (kind === undefined) {
    issues.add(path, wrongValue(value, field.allowed))
    return undefined
  }
  const [required, optional] = fieldMembers[kind]
  return readValue(object({ kind: fieldKind, ...required }, optional), value, path, issues) as IndexField | undefined
})

const indexFields = structured<NonNullable<IndexDefinition['fields']>>(
  `an object with up to ${mostFields} fields`,
  {},
  (value, path, issues) => {
    if (!isObject(value) || Object.keys(value).length > mostFields) {
      issues.add(path, wrongValue(value, indexFields.allowed))
      return undefined
    }
    for (const [name, given] of Object.entries(value)) {
      if (fieldName.parse(name) === undefined) issues.add(placeOf(path, name), wrongValue(name, fieldName.allowed))
      else readValue(field, given, placeOf(path, name), issues)
    }
    return value as NonNullable<IndexDefinition['fields']>
  },
)

const eviction = codeValue<NonNullable<IndexDefinition['evict']>>(
  '"oldest", or { least } with the name of a number field',
  (value) => value === 'oldest' || (isObject(value) && typeof value.least === 'string'),
)

/** The options of `searchIndex`: the definition and those of its calls. */
export const searchIndexOptions = object(
  { name: fieldName },
  {
    fields: indexFields,
    recent: wholeNumber(0, 1_000),
    maxRecords: wholeNumber(1, 100_000_000),
    evict: eviction,
    prefix: keyPrefix,
    timeoutMs: millisecondsBetween(1, longestWaitMs),
  },
  { allowed: 'an object that names the index' },
)

/** Completes a definition that `searchIndexOptions` has validated. */
export function readDefinition(definition: IndexDefinition): ReadDefinition {
  const { name, recent = 100, maxRecords = 1_000_000, evict = 'oldest' } = definition
  const fields = Object.entries(definition.fields ?? {}).map(([name, given]) => ({ ...given, name }))
  const least = fields.findIndex(({ name, kind }) => evict !== 'oldest' && name === evict.least && kind === 'number')
  if (evict !== 'oldest' && least < 0) throw argumentInvalid('options.evict', evict, eviction.allowed)
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([fields.map((each) => Object.entries(each).sort(byName)), recent]))
    .digest('hex')
    .slice(0, 16)
  return { name, fields, recent, maxRecords, least: least < 0 ? '' : String(least), fingerprint }
}

const byName = ([one]: [string, unknown], [other]: [string, unknown]): number => (one < other ? -1 : 1)
