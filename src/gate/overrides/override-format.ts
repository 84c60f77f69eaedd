import { FluxGateError } from '../../core/errors.js'
import type { CommandWriter } from '../../redis/bulk/commands/writer.js'
import { csvRecords, splitFields } from '../../redis/bulk/records/csv-records.js'
import { Fields } from '../../redis/bulk/records/fields.js'
import type { Encoded, RecordFormat } from '../../redis/bulk/records/record-source.js'
import { type OverrideReader, overrideColumns, rowDocument } from '../../rules/schema/overrides/override-records.js'
import { isPlainIdentity } from '../../stores/redis/bucket-keys.js'

/** Receives overrides and batches them into commands. Each method returns true if it wrote a command, false if it buffered. */
export interface OverrideTarget {
  write(key: string, isRange: boolean, value: Buffer, out: CommandWriter): boolean
  /** Fast path for keys that need no normalization; undefined if keys always need it. */
  writePlain: ((bytes: Buffer, from: number, to: number, value: Buffer, out: CommandWriter) => boolean) | undefined
  flush(out: CommandWriter): boolean
}

const comma = 0x2c
const quote = 0x22

/** Overrides as JSON lines. */
export function overrideLines(reader: OverrideReader<Buffer>, target: OverrideTarget): RecordFormat {
  return {
    encode(bytes, from, to, out) {
      const text = bytes.toString('utf8', from, to).trim()
      return text === '' ? 'nothing' : written(reader.readJson(text), target, out)
    },
    rest: (out) => target.flush(out),
  }
}

/** Overrides as CSV. Rows often differ only in the key, so the parsed remainder of a row is cached. */
export function overrideTable(reader: OverrideReader<Buffer>, target: OverrideTarget): RecordFormat {
  const fields = new Fields()
  const endings = new RowEndings<Buffer>()
  let columns: readonly string[] | undefined
  const { endOf } = csvRecords(undefined)
  const { writePlain } = target

  /** Writes a row with a plain key and a cached remainder. Returns undefined for any other row. */
  const writeKnown = (bytes: Buffer, from: number, to: number, out: CommandWriter): Encoded | undefined => {
    let end = from
    while (end < to && bytes[end] !== comma) end++
    const value = endings.get(bytes, end, to)
    if (value === undefined || bytes[from] === quote || !isPlainIdentity(bytes, from, end)) return undefined
    return writePlain?.(bytes, from, end, value, out) ? 'written' : 'held'
  }
  const writeRow = (names: readonly string[], bytes: Buffer, to: number, out: CommandWriter): Encoded => {
    if (fields.count !== names.length) return { issue: `has ${fields.count} columns; expected ${names.length}` }
    const row = rowOf(fields)
    const keyAt = names.indexOf('key')
    const others = row.filter((_, i) => i !== keyAt).join('\0')
    const found = reader.read(row[keyAt], others, () => rowDocument(names, row))
    const isFirst = keyAt === 0 && fields.sourceOf(0) === bytes && bytes[fields.endOf(0)] === comma
    if (isFirst && typeof found === 'object' && writePlain) endings.set(bytes, fields.endOf(0), to, found.value)
    return written(found, target, out)
  }
  return {
    ...(endOf && { endOf }),
    encode(bytes, from, to, out) {
      if (from === to) return 'nothing'
      const known = writeKnown(bytes, from, to, out)
      if (known !== undefined) return known
      const issue = splitFields(bytes, from, to, comma, fields)
      if (issue !== undefined) return { issue }
      if (columns !== undefined) return writeRow(columns, bytes, to, out)
      columns = checkColumns(rowOf(fields))
      return 'nothing'
    },
    rest: (out) => target.flush(out),
  }
}

function written(
  found: ReturnType<OverrideReader<Buffer>['read']>,
  target: OverrideTarget,
  out: CommandWriter,
): Encoded {
  if (typeof found === 'string') return { issue: found }
  return target.write(found.key, found.isRange, found.value, out) ? 'written' : 'held'
}

const rowOf = (fields: Fields): string[] => Array.from({ length: fields.count }, (_, i) => fields.text(i))

function checkColumns(row: readonly string[]): readonly string[] {
  const names = row.map((name) => name.trim())
  const unknown = names.filter((name) => !overrideColumns.includes(name))
  if (unknown.length === 0 && names.includes('key') && names.includes('action')) return names
  throw new FluxGateError(
    'FLUXGATE_BULK_INPUT_INVALID',
    `The first line must contain the columns key and action, and may contain ${overrideColumns.slice(2).join(', ')}; received ${names.join(', ')}.`,
  )
}

/** The cache is cleared when it is full: rows then differ too much for it to help. */
const maxEntries = 10_000

/** Caches a value by the last bytes of a row, without decoding them. */
class RowEndings<T> {
  readonly #byHash = new Map<number, { readonly bytes: Buffer; readonly value: T }>()

  get(bytes: Buffer, from: number, to: number): T | undefined {
    const known = this.#byHash.get(hashOf(bytes, from, to))
    if (known === undefined || known.bytes.length !== to - from) return undefined
    for (let i = from; i < to; i++) if (bytes[i] !== known.bytes[i - from]) return undefined
    return known.value
  }

  /** Replaces an entry with the same hash. */
  set(bytes: Buffer, from: number, to: number, value: T): void {
    if (this.#byHash.size >= maxEntries) this.#byHash.clear()
    this.#byHash.set(hashOf(bytes, from, to), { bytes: Buffer.from(bytes.subarray(from, to)), value })
  }
}

/** FNV-1a. */
function hashOf(bytes: Buffer, from: number, to: number): number {
  let hash = 0x811c9dc5
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193)
  return hash
}
