import { FluxGateError } from '../../core/errors.js'
import type { IndexField, ReadDefinition } from './definition.js'
import { endOfText, numberBytes, textBytes } from './ordered-bytes.js'

/**
 * One thing that the index holds of a record: a letter for what it is and the number of the field, a text, a number.
 * `n` is a score, `l` a place by bytes, `t` a tag, `w` the weight of a term. `edit.lua` has the same list.
 */
export type Entry = readonly [op: string, text: Buffer, number: string]

const nothing = Buffer.alloc(0)
const mostBytes = { id: 255, text: 512, word: 255 }
const mostWords = 64
const mostWeight = 1_000_000_000

/** What the index holds of a record: the same for the same record, wherever and whenever. */
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
      // Also in the order of ids, so that those of a tag can be paged through.
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

/** The id comes last, and its length in one byte, so that it can be cut off again. */
function placeOf(parts: readonly Part[], id: Buffer): Buffer {
  return Buffer.concat([...parts.map(partBytes), id, Buffer.from([id.length])])
}

/** None if a part is missing. */
function combinations(parts: readonly (readonly Part[])[]): Part[][] {
  const found = parts.reduce<Part[][]>(
    (sofar, next) => sofar.flatMap((some) => next.map((one) => [...some, one])),
    [[]],
  )
  if (found.length > mostWords) throw mistake('composite', `at most ${mostWords} combinations`)
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
  if (typeof value !== 'number' || !Number.isFinite(value)) throw mistake(name, 'a number')
  return value
}

function textAt(record: object, name: string): string | undefined {
  const value = memberOf(record, name)
  return value === undefined ? undefined : checkText(value, name, mostBytes.text)
}

/** Each once. */
function wordsAt(record: object, name: string): readonly string[] {
  const value = memberOf(record, name)
  if (value === undefined) return []
  const words: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (words.length > mostWords) throw mistake(name, `up to ${mostWords} texts`)
  return [...new Set(words.map((word) => checkText(word, name, mostBytes.word)))].filter((word) => word !== '')
}

function weightAt(record: object, name: string): number {
  const value = memberOf(record, name)
  const isWeight = Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= mostWeight
  if (!isWeight) throw mistake(name, `a whole number from 1 to ${mostWeight}`)
  return value as number
}

const halfOfPair = /\p{Surrogate}/u

/** Half of a surrogate pair has no UTF-8: two different texts would have the same bytes. */
export function checkText(value: unknown, place: string, most: number): string {
  if (typeof value === 'string' && value.length <= most && !halfOfPair.test(value) && Buffer.byteLength(value) <= most)
    return value
  throw mistake(place, `well-formed text of up to ${most} bytes`)
}

export function idBytes(id: unknown): Buffer {
  if (id === '') throw mistake('id', `text of 1 to ${mostBytes.id} bytes`)
  return Buffer.from(checkText(id, 'id', mostBytes.id))
}

export const mistake = (place: string, allowed: string): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${place}: not understood; allowed: ${allowed}.`)
