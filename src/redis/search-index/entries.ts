import { FluxGateError } from '../../core/errors.js'
import type { IndexField, ReadDefinition } from './definition.js'
import { endOfText, numberBytes, textBytes } from './ordered-bytes.js'

/**
 * One index entry of a record: an operation, a text and a number. The operation is a letter and the number of the field.
 * `n` is a score, `l` a position in byte order, `t` a tag, `w` the weight of a term. `edit.lua` has the same list.
 */
export type Entry = readonly [op: string, text: Buffer, number: string]

const nothing = Buffer.alloc(0)
const maxBytes = { id: 255, text: 512, word: 255 }
const maxWords = 64
const maxWeight = 1_000_000_000

/** Derives the index entries of a record. The result depends only on the definition and the record. */
export function entriesOf({ fields }: Pick<ReadDefinition, 'fields'>, id: Buffer, record: object): Entry[] {
  const entries: Entry[] = []
  for (const [number, field] of fields.entries())
    for (const [letter, text, value] of entriesOfField(field, id, record))
      entries.push([`${letter}${number}`, text, value])
  return entries
}

function entriesOfField(field: IndexField & { readonly name: string }, id: Buffer, record: object): Entry[] {
  const from = 'from' in field && field.from !== undefined ? field.from : field.name
  switch (field.kind) {
    case 'number': {
      const value = numberAt(record, from)
      return value === undefined ? [] : [['n', nothing, String(value)]]
    }
    case 'text': {
      const value = textAt(record, from)
      return value === undefined ? [] : [['l', placeOf([value], id), '']]
    }
    case 'composite':
      return combinations(field.of.map((name) => partsAt(record, name))).map((parts) => ['l', placeOf(parts, id), ''])
    case 'tags':
      // The `l` entry sorts by id, so that `find` can page through the records of a tag.
      return wordsAt(record, from).flatMap((tag): Entry[] => [
        ['t', Buffer.from(tag), ''],
        ['l', placeOf([tag], id), ''],
      ])
    case 'suggest': {
      const weight = (): number => (field.weight === undefined ? 1 : weightAt(record, field.weight))
      return wordsAt(record, from).map((term) => ['w', textBytes(term), String(weight())])
    }
  }
}

export type Part = string | number

export const partBytes = (part: Part): Buffer =>
  typeof part === 'number' ? numberBytes(part) : Buffer.concat([textBytes(part), endOfText])

/** Appends the id and its length in one byte, so that the id can be extracted from the member. */
function placeOf(parts: readonly Part[], id: Buffer): Buffer {
  return Buffer.concat([...parts.map(partBytes), id, Buffer.from([id.length])])
}

/** Returns all combinations of the parts; none if a part is missing. */
function combinations(parts: readonly (readonly Part[])[]): Part[][] {
  const found = parts.reduce<Part[][]>(
    (sofar, next) => sofar.flatMap((some) => next.map((one) => [...some, one])),
    [[]],
  )
  if (found.length > maxWords) throw entryIssue('composite', `a field with at most ${maxWords} combinations per record`)
  return found
}

const memberOf = (record: object, name: string): unknown =>
  Object.hasOwn(record, name) ? ((record as Record<string, unknown>)[name] ?? undefined) : undefined

function partsAt(record: object, name: string): readonly Part[] {
  const value = memberOf(record, name)
  if (Array.isArray(value)) return wordsAt(record, name)
  const part = typeof value === 'number' ? numberAt(record, name) : textAt(record, name)
  return part === undefined ? [] : [part]
}

function numberAt(record: object, name: string): number | undefined {
  const value = memberOf(record, name)
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isFinite(value)) throw entryIssue(name, 'a number')
  return value
}

function textAt(record: object, name: string): string | undefined {
  const value = memberOf(record, name)
  return value === undefined ? undefined : checkText(value, name, maxBytes.text)
}

/** Returns the distinct non-empty words of a member. */
function wordsAt(record: object, name: string): readonly string[] {
  const value = memberOf(record, name)
  if (value === undefined) return []
  const words: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (words.length > maxWords) throw entryIssue(name, `a list of up to ${maxWords} strings`)
  return [...new Set(words.map((word) => checkText(word, name, maxBytes.word)))].filter((word) => word !== '')
}

function weightAt(record: object, name: string): number {
  const value = memberOf(record, name)
  const isWeight = Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= maxWeight
  if (!isWeight) throw entryIssue(name, `an integer from 1 to ${maxWeight}`)
  return value as number
}

const loneSurrogate = /\p{Surrogate}/u

/** Rejects lone surrogates: they have no UTF-8 encoding, so two different strings would have the same bytes. */
export function checkText(value: unknown, place: string, most: number): string {
  if (
    typeof value === 'string' &&
    value.length <= most &&
    !loneSurrogate.test(value) &&
    Buffer.byteLength(value) <= most
  )
    return value
  throw entryIssue(place, `a well-formed string of up to ${most} bytes`)
}

export function idBytes(id: unknown): Buffer {
  if (id === '') throw entryIssue('id', `a string of 1 to ${maxBytes.id} bytes`)
  return Buffer.from(checkText(id, 'id', maxBytes.id))
}

export const entryIssue = (place: string, allowed: string): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${place} must be ${allowed}.`)
