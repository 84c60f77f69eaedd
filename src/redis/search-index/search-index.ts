import { FluxGateError } from '../../core/errors.js'
import { checkText, entriesOf, idBytes, mistake } from './entries.js'
import type { IndexCalls, Reply } from './index-calls.js'
import { textBytes, textOfBytes } from './ordered-bytes.js'
import { checkLimit, cursorMark, type FindQuery, pageArguments, tagSet, writeCursor } from './query.js'
import { type RebuildReport, rebuildIndex, sweep } from './rebuild.js'
import { type VerifyReport, verifyIndex } from './verify.js'

export interface Found<Item> {
  readonly id: string
  readonly record: Item
}

export interface Page<Item> {
  readonly items: readonly Found<Item>[]
  /** For the next page; null if there is none. */
  readonly cursor: string | null
}

export interface Suggestion {
  readonly term: string
  /** How often it occurs, or the sum of the weights. */
  readonly count: number
}

const mostBytes = 262_144
/** So often an update is tried again that somebody else has overtaken. */
const mostAttempts = 50

/** Records in Redis with what they are found by. Every edit changes both in one step. */
export class SearchIndex<Item extends object> {
  readonly #calls: IndexCalls

  constructor(calls: IndexCalls) {
    this.#calls = calls
  }

  /** Writes a record, whether there was one of that id or not. */
  async put(id: string, record: Item): Promise<void> {
    await this.#edit('PUT', id, documentOf(record), '')
  }

  /** Writes a record if there is none of that id; whether it was written. */
  insert(id: string, record: Item): Promise<boolean> {
    return this.#edit('INSERT', id, documentOf(record), '')
  }

  /**
   * Writes what `change` makes of the record that is there, and makes it again if somebody else was faster. Resolves with
   * what was written, or undefined if there is no such record or `change` gives undefined.
   */
  async update(id: string, change: (record: Item) => Item | undefined): Promise<Item | undefined> {
    if (typeof change !== 'function') throw mistake('change', 'a function from the record to what it should be')
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const [, document] = await this.#read('GET', [idBytes(id)])
      if (document === undefined) return undefined
      const record = change(JSON.parse(String(document)))
      if (record === undefined) return undefined
      const changed = documentOf(record)
      if (await this.#edit('REPLACE', id, changed, document as Buffer)) return JSON.parse(changed)
    }
    throw new FluxGateError(
      'FLUXGATE_STORE_FAILED',
      `The record "${id}" was changed by others during each of ${mostAttempts} attempts to update it.`,
    )
  }

  /** Whether there was one. */
  remove(id: string): Promise<boolean> {
    return this.#edit('REMOVE', id, '{}', '')
  }

  async get(id: string): Promise<Item | undefined> {
    const [found] = itemsOf<Item>(await this.#read('GET', [idBytes(id)]))
    return found?.record
  }

  /** One page of records, in the order of a field. */
  async find(query: FindQuery): Promise<Page<Item>> {
    const args = pageArguments(this.#calls.definition, query)
    const reply = listOf(await this.#calls.run('page', 'find records', args))
    if (reply.length === 0) return { items: [], cursor: null }
    const [more, score, member, ...rows] = reply
    const mark = cursorMark(String(args[0]), String(args[2]))
    return { items: itemsOf(rows), cursor: more === 1 ? writeCursor(mark, score as Buffer, member as Buffer) : null }
  }

  /** The most frequent terms that begin with `prefix`, those of the same frequency by their code points. At most 50. */
  async suggest(field: string, prefix: string, limit = 10): Promise<readonly Suggestion[]> {
    const number = this.#calls.definition.fields.findIndex(({ name, kind }) => name === field && kind === 'suggest')
    if (number < 0) throw mistake('field', 'the name of a field of kind suggest')
    checkLimit(limit, 50)
    const args = [String(number), textBytes(checkText(prefix, 'prefix', 255)), String(limit)]
    const [, ...rows] = listOf(await this.#calls.run('suggest', 'complete a prefix', args))
    return pairs(rows).map(([term, count]) => ({ term: textOfBytes(term as Buffer), count: Number(count) }))
  }

  /** Records that chance picks, all different; of a tag, or of all. At most 1 000. */
  async sample(
    count: number,
    tagged?: { readonly field: string; readonly tag: string },
  ): Promise<readonly Found<Item>[]> {
    checkLimit(count, 1_000)
    return itemsOf(await this.#read('SAMPLE', [String(count), ...this.#tagSet(tagged)]))
  }

  /** The records that were written last, newest first, as many as the definition keeps. */
  async recent(limit = this.#calls.definition.recent): Promise<readonly Found<Item>[]> {
    if (limit === 0) return []
    checkLimit(limit, 1_000)
    return itemsOf(await this.#read('RECENT', [String(limit)]))
  }

  /** How many records there are; of a tag, or of all. */
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
   * Makes the index anew from the records, also with other fields than before. Edits go on meanwhile; queries reject until
   * it is done. One that was not finished is carried on by calling it again.
   */
  rebuild(): Promise<RebuildReport> {
    return rebuildIndex(this.#calls)
  }

  /** Compares the index with what the records say should be in it. Reads everything. */
  verify(): Promise<VerifyReport> {
    return verifyIndex(this.#calls)
  }

  /** Closes a connection that was opened here. */
  close(): Promise<void> {
    return this.#calls.close()
  }

  async #edit(what: string, id: string, document: string, expected: string | Buffer): Promise<boolean> {
    const { definition } = this.#calls
    const bytes = idBytes(id)
    // Of what is written, not of what was given: they differ where an object has a way of its own to become JSON.
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
  if (text === undefined || !text.startsWith('{') || Buffer.byteLength(text) > mostBytes)
    throw mistake('record', `an object of up to ${mostBytes} bytes as JSON`)
  // JSON would make nothing of them, and nobody would find the record.
  for (const [name, value] of Object.entries(record))
    if (typeof value === 'number' && !Number.isFinite(value)) throw mistake(name, 'a finite number')
  return text
}

/** Undefined also of what has no JSON, such as an object that holds itself. */
function jsonOf(record: object): string | undefined {
  try {
    return JSON.stringify(record)
  } catch {
    return undefined
  }
}
