import { FluxGateError } from '../../../core/errors.js'
import { write } from '../commands/plain-commands.js'
import { type CommandTemplate, type FieldValues, writeTemplate } from '../commands/template.js'
import { Fields } from './fields.js'
import type { RecordFormat } from './record-source.js'

const quote = 0x22
const lf = 0x0a
const cr = 0x0d

/**
 * Comma-separated values as in RFC 4180: a quoted field may contain delimiters, line ends and doubled quotes. With a
 * template, the first line names the columns, unless the template uses column numbers. Without a template, each record is a
 * command.
 */
export function csvRecords(template: CommandTemplate | undefined, delimiter = ','): RecordFormat {
  const separator = separatorOf(delimiter)
  const fields = new Fields()
  const columns = new Columns(fields)
  let width = 0
  if (template?.names.every((name) => /^[1-9]\d*$/.test(name))) {
    columns.indexes = template.names.map((name) => Number(name) - 1)
    width = Math.max(...columns.indexes) + 1
  }
  return {
    endOf: (bytes, from, to) => endOfRecord(bytes, from, to, separator),
    encode(bytes, from, to, out) {
      if (from === to) return 'nothing'
      const problem = splitFields(bytes, from, to, separator, fields)
      if (problem !== undefined) return { issue: problem }
      if (template === undefined) return write(fields, out)
      if (columns.indexes.length === 0) {
        columns.indexes = fieldIndexes(template, fields)
        width = fields.count
        return 'nothing'
      }
      if (fields.count !== width) return { issue: `expected ${width} columns; received ${fields.count}` }
      writeTemplate(template, columns, out)
      return 'written'
    },
  }
}

/** Maps the placeholder indexes of a template to the fields of a record. */
class Columns implements FieldValues {
  indexes: readonly number[] = []
  readonly #fields: Fields

  constructor(fields: Fields) {
    this.#fields = fields
  }

  sourceOf(index: number): Buffer {
    return this.#fields.sourceOf(this.indexes[index] as number)
  }

  startOf(index: number): number {
    return this.#fields.startOf(this.indexes[index] as number)
  }

  endOf(index: number): number {
    return this.#fields.endOf(this.indexes[index] as number)
  }
}

function fieldIndexes(template: CommandTemplate, fields: Fields): number[] {
  const names = Array.from({ length: fields.count }, (_, i) => fields.text(i).trim())
  const unknown = template.names.filter((name) => !names.includes(name))
  if (unknown.length === 0) return template.names.map((name) => names.indexOf(name))
  throw new FluxGateError(
    'FLUXGATE_BULK_INPUT_INVALID',
    `The first line has no column ${unknown.join(', ')}; its columns are ${names.join(', ')}. Change the command template or the first line.`,
  )
}

function separatorOf(delimiter: string): number {
  const [byte, ...others] = Buffer.from(delimiter)
  if (byte !== undefined && others.length === 0 && ![quote, lf, cr].includes(byte)) return byte
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `delimiter must be one ASCII character such as , ; or a tab, but no quote or line end; received ${JSON.stringify(delimiter)}.`,
  )
}

function endOfRecord(bytes: Buffer, from: number, to: number, separator: number): number {
  let isQuoted = bytes[from] === quote
  let closedAt = -1
  for (let at = isQuoted ? from + 1 : from; at < to; at++) {
    const byte = bytes[at]
    if (byte === quote) {
      // A doubled quote closes the quotes and reopens them.
      if (isQuoted) closedAt = at
      isQuoted = !isQuoted && closedAt === at - 1
    } else if (isQuoted) continue
    else if (byte === lf) return at
    else if (byte === separator && bytes[at + 1] === quote && at + 1 < to) {
      isQuoted = true
      at++
    }
  }
  return -1
}

/** Splits a record into fields. Returns the syntax error, or `undefined`. */
export function splitFields(
  bytes: Buffer,
  from: number,
  to: number,
  separator: number,
  fields: Fields,
): string | undefined {
  fields.begin(bytes)
  let at = from
  for (;;) {
    if (bytes[at] === quote && at < to) {
      at = splitQuoted(bytes, at + 1, to, fields)
      if (at < 0) return 'a quoted field is not closed'
      if (at < to && bytes[at] !== separator) return 'a quoted field is not followed by the delimiter'
    } else {
      const start = at
      while (at < to && bytes[at] !== separator) at++
      fields.add(start, at)
    }
    if (at >= to) return undefined
    at++
  }
}

/** Parses a quoted field. Returns the position after the closing quote, or -1 without a closing quote. */
function splitQuoted(bytes: Buffer, from: number, to: number, fields: Fields): number {
  const end = bytes.indexOf(quote, from)
  if (end < 0 || end >= to) return -1
  if (bytes[end + 1] !== quote || end + 1 >= to) {
    fields.add(from, end)
    return end + 1
  }
  fields.beginCopy()
  for (let at = from; at < to; at++) {
    if (bytes[at] === quote) {
      if (bytes[at + 1] !== quote || at + 1 >= to) {
        fields.endCopy()
        return at + 1
      }
      at++
    }
    fields.copy(bytes[at] as number)
  }
  return -1
}
