import { Fields } from '../records/fields.js'
import type { Encoded, RecordFormat } from '../records/record-source.js'
import type { CommandWriter } from './writer.js'

const space = 0x20
const hash = 0x23
const doubleQuote = 0x22
const singleQuote = 0x27
const backslash = 0x5c
const letterX = 0x78

/** Escape sequences such as `\n`. Other escaped characters are literal. */
const escapes: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, b: 8, a: 7 }
const escaped = Uint8Array.from({ length: 256 }, (_, byte) => escapes[String.fromCharCode(byte)] ?? byte)

/** White space as in redis-cli: a space, or any byte from tab to carriage return. */
const isSpace = (byte: number | undefined): boolean => byte === space || (byte !== undefined && byte >= 9 && byte <= 13)

/** Commands in redis-cli syntax, one per line. A line that starts with `#` is a comment. */
export function plainCommands(): RecordFormat {
  const fields = new Fields()
  return {
    encode(bytes, from, to, out) {
      if (bytes[from] === hash) return 'nothing'
      const problem = splitArguments(bytes, from, to, fields)
      if (problem !== undefined) return { issue: problem }
      return fields.count === 0 ? 'nothing' : write(fields, out)
    },
  }
}

/** Writes the fields as a command. The first field is the command name. */
export function write(fields: Fields, out: CommandWriter): Encoded {
  out.begin(fields.count)
  for (let i = 0; i < fields.count; i++) out.add(fields.sourceOf(i), fields.startOf(i), fields.endOf(i))
  return 'written'
}

/** Splits at white space outside quotes. Returns the syntax error, or `undefined`. */
export function splitArguments(bytes: Buffer, from: number, to: number, fields: Fields): string | undefined {
  fields.begin(bytes)
  let at = from
  for (;;) {
    while (at < to && isSpace(bytes[at])) at++
    if (at === to) return undefined
    const start = at
    let byte = bytes[at]
    while (at < to && !isSpace(byte) && byte !== doubleQuote && byte !== singleQuote) byte = bytes[++at]
    if (at === to || isSpace(byte)) {
      fields.add(start, at)
      continue
    }
    at = splitQuoted(bytes, start, to, fields)
    if (at < 0) return 'a quote is not closed, or is not followed by a space'
  }
}

/** Parses an argument that contains quotes. Returns its end position, or -1 for a syntax error. */
function splitQuoted(bytes: Buffer, start: number, to: number, fields: Fields): number {
  fields.beginCopy()
  let at = start
  while (at < to && !isSpace(bytes[at])) {
    const byte = bytes[at] as number
    if (byte !== doubleQuote && byte !== singleQuote) {
      fields.copy(byte)
      at++
      continue
    }
    at = byte === doubleQuote ? inDoubleQuotes(bytes, at + 1, to, fields) : inSingleQuotes(bytes, at + 1, to, fields)
    if (at < 0 || (at < to && !isSpace(bytes[at]))) return -1
  }
  fields.endCopy()
  return at
}

function inDoubleQuotes(bytes: Buffer, from: number, to: number, fields: Fields): number {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number
    if (byte === doubleQuote) return at + 1
    if (byte !== backslash || at + 1 === to) fields.copy(byte)
    else {
      const hex = bytes[at + 1] === letterX && at + 3 < to ? bytes.toString('latin1', at + 2, at + 4) : ''
      if (/^[0-9a-f]{2}$/i.test(hex)) {
        fields.copy(Number.parseInt(hex, 16))
        at += 3
      } else fields.copy(escaped[bytes[++at] as number] as number)
    }
  }
  return -1
}

function inSingleQuotes(bytes: Buffer, from: number, to: number, fields: Fields): number {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number
    if (byte === singleQuote) return at + 1
    if (byte === backslash && bytes[at + 1] === singleQuote && at + 1 < to) at++
    fields.copy(bytes[at] as number)
  }
  return -1
}
