import { FluxGateError } from '../../core/errors.js'
import { callback, wholeNumber } from '../../validation/kinds.js'
import { checkArgument } from '../../validation/options.js'
import { checkText, entriesOf, entryIssue, idBytes } from './entries.js'
import type { IndexCalls, Reply } from './index-calls.js'
import { textBytes, textOfBytes } from './ordered-bytes.js'
import { cursorMark, type FindQuery, pageArguments, tagSet, writeCursor } from './query.js'
import { type RebuildReport, rebuildIndex, sweep } from './rebuild.js'
import { type VerifyReport, verifyIndex } from './verify.js'

/** A record with its id. */
export interface Found<Item> {
  /** The id of the record. */
  readonly id: string
  /** The record as it was written. */
  readonly record: Item
}

/** One page of records. */
export interface Page<Item> {
  /** The entries of this page. */
  readonly items: readonly Found<Item>[]
  /** The cursor of the next page, or null if this is the last page. */
  readonly cursor: string | null
}

/** A completed term. */
export interface Suggestion {
  /** The term that completes the prefix. */
  readonly term: string
  /** The sum of the weights of the term; without weights, the number of records that contain it. */
  readonly count: number
}

const maxBytes = 262_144
const pageSize = wholeNumber(1, 1_000)
/** The maximum number of attempts of an update that conflicts with concurrent changes. */
const maxAttempts = 50

/**
 * Records in Redis with secondary indexes. Every edit changes the record and its index entries atomically.
 *
 * Methods reject with `FLUXGATE_ARGUMENT_INVALID` for invalid arguments, and with `FLUXGATE_INDEX_CHANGED` if the index was
 * created with other fields or is being rebuilt.
 */
export class SearchIndex<Item extends object> {
  readonly #calls: IndexCalls

  constructor(calls: IndexCalls) {
    this.#calls = calls
  }

  /** Inserts or replaces a record. Its JSON may have up to 262,144 bytes. */
  async put(id: string, record: Item): Promise<void> {
    await this.#edit('PUT', id, documentOf(record), '')
  }

  /** Inserts a record. Resolves with false, without writing, if the id exists. */
  insert(id: string, record: Item): Promise<boolean> {
    return this.#edit('INSERT', id, documentOf(record), '')
  }

  /**
   * Replaces a record with the result of `change`. If the record changes concurrently, `change` is called again with the new
   * record. Resolves with the written record, or with `undefined` if the record does not exist or `change` returns
   * `undefined`. Rejects with `FLUXGATE_STORE_FAILED` after 50 conflicts.
   */
  async update(id: string, change: (record: Item) => Item | undefined): Promise<Item | undefined> {
    checkArgument('change', change, callback)
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const [, document] = await this.#read('GET', [idBytes(id)])
      if (document === undefined) return undefined
      const record = change(JSON.parse(String(document)))
      if (record === undefined) return undefined
      const changed = documentOf(record)
      if (await this.#edit('REPLACE', id, changed, document as Buffer)) return JSON.parse(changed)
    }
    throw new FluxGateError(
      'FLUXGATE_STORE_FAILED',
      `The record "${id}" was not updated: it changed during each of ${maxAttempts} attempts. Try again later.`,
    )
  }

  /** Removes a record. Resolves with false if it did not exist. */
  remove(id: string): Promise<boolean> {
    return this.#edit('REMOVE', id, '{}', '')
  }

  /** Resolves with the record, or `undefined` if it does not exist. Works during a rebuild. */
  async get(id: string): Promise<Item | undefined> {
    const [found] = itemsOf<Item>(await this.#read('GET', [idBytes(id)]))
    return found?.record
  }

  /** Finds one page of records in the order of a field. A page may be shorter than `limit` if `tagged` is set. */
  async find(query: FindQuery): Promise<Page<Item>> {
    const args = pageArguments(this.#calls.definition, query)
    const reply = listOf(await this.#calls.run('page', 'find records', args))
    if (reply.length === 0) return { items: [], cursor: null }
    const [more, score, member, ...rows] = reply
    const mark = cursorMark(String(args[0]), String(args[2]))
    return { items: itemsOf(rows), cursor: more === 1 ? writeCursor(mark, score as Buffer, member as Buffer) : null }
  }

  /**
   * Completes a prefix. Resolves with the highest-ranked terms; terms with equal counts are in code point order.
   *
   * @param field - A field of kind `suggest`.
   * @param limit - The maximum number of terms, from 1 to 50.
   */
  async suggest(field: string, prefix: string, limit = 10): Promise<readonly Suggestion[]> {
    const number = this.#calls.definition.fields.findIndex(({ name, kind }) => name === field && kind === 'suggest')
    if (number < 0) throw entryIssue('field', 'a suggest field of the index')
    checkArgument('limit', limit, wholeNumber(1, 50))
    const args = [String(number), textBytes(checkText(prefix, 'prefix', 255)), String(limit)]
    const [, ...rows] = listOf(await this.#calls.run('suggest', 'complete a prefix', args))
    return pairs(rows).map(([term, count]) => ({ term: textOfBytes(term as Buffer), count: Number(count) }))
  }

  /** Picks up to `count` (1 to 1,000) distinct random records, of all records or of one tag. */
  async sample(
    count: number,
    tagged?: { readonly field: string; readonly tag: string },
  ): Promise<readonly Found<Item>[]> {
    checkArgument('count', count, pageSize)
    return itemsOf(await this.#read('SAMPLE', [String(count), ...this.#tagSet(tagged)]))
  }

  /** The last written records, newest first. Limited by the option `recent` of the definition. */
  async recent(limit = this.#calls.definition.recent): Promise<readonly Found<Item>[]> {
    if (limit === 0) return []
    checkArgument('limit', limit, pageSize)
    return itemsOf(await this.#read('RECENT', [String(limit)]))
  }

  /** The number of records, in total or with one tag. */
  async count(tagged?: { readonly field: string; readonly tag: string }): Promise<number> {
    const [count = 0] = await this.#read('COUNT', this.#tagSet(tagged))
    return Number(count)
  }

  /** Removes every record. */
  async clear(): Promise<void> {
    await this.#calls.run('turn', 'be cleared', ['CLEAR'])
    await sweep(this.#calls)
  }

  /**
   * Rebuilds the index from the records, even after the fields have changed. Edits continue during the rebuild; queries
   * reject until it has finished. Call it again to continue an interrupted rebuild.
   */
  rebuild(): Promise<RebuildReport> {
    return rebuildIndex(this.#calls)
  }

  /** Compares the index with the records. Reads the whole index. */
  verify(): Promise<VerifyReport> {
    return verifyIndex(this.#calls)
  }

  /** Closes the connection. The caller's client stays open. */
  close(): Promise<void> {
    return this.#calls.close()
  }

  async #edit(what: string, id: string, document: string, expected: string | Buffer): Promise<boolean> {
    const { definition } = this.#calls
    const bytes = idBytes(id)
    // Derived from the JSON, not from the object: they differ if the object has a toJSON method.
    const entries = entriesOf(definition, bytes, JSON.parse(document))
    const { recent, maxRecords, least } = definition
    const args = [what, bytes, document, expected, String(recent), String(maxRecords), least, ...entries.flat()]
    return (await this.#calls.run('edit', 'write a record', args)) === 1
  }

  async #read(what: string, args: readonly (string | Buffer)[]): Promise<readonly (number | Buffer)[]> {
    return listOf(await this.#calls.run('read', 'read records', [what, ...args]))
  }

  #tagSet(tagged: { readonly field: string; readonly tag: string } | undefined): string[] {
    return tagged === undefined ? [] : [tagSet(this.#calls.definition, tagged.field, tagged.tag)]
  }
}

const listOf = (reply: Reply): readonly (number | Buffer)[] => (Array.isArray(reply) ? reply : [])

const pairs = <T>(list: readonly T[]): [T, T][] =>
  Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i] as T, list[2 * i + 1] as T])

const itemsOf = <Item>(rows: readonly (number | Buffer)[]): Found<Item>[] =>
  pairs(rows).map(([id, document]) => ({ id: String(id), record: JSON.parse(String(document)) }))

function documentOf(record: object): string {
  const text = jsonOf(record)
  if (text === undefined || !text.startsWith('{') || Buffer.byteLength(text) > maxBytes)
    throw entryIssue('record', `an object whose JSON has up to ${maxBytes} bytes`)
  // JSON would turn them into null, and the record could not be found by the field.
  for (const [name, value] of Object.entries(record))
    if (typeof value === 'number' && !Number.isFinite(value)) throw entryIssue(name, 'a finite number')
  return text
}

/** Returns `undefined` for values without JSON, such as circular objects. */
function jsonOf(record: object): string | undefined {
  try {
    return JSON.stringify(record)
  } catch {
    return undefined
  }
}
