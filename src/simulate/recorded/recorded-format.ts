/** Recordings come as timestamps, CSV, JSON lines or access logs. Which of them is found out from the first lines. */

import type { Arrival } from '../arrival.js'
import { parseAccessLogLine } from './access-log.js'
import { arrivalOf, type FieldName, fieldOf } from './recorded-fields.js'
import { parseTimestamp } from './timestamp.js'

export interface RecordedFormat {
  /** For people. */
  readonly name: string
  /** A first line that says what the columns hold. */
  readonly hasHeader: boolean
  /** Undefined: not a line of this format. */
  parse(line: string): Arrival | undefined
}

const timestamps: RecordedFormat = {
  name: 'timestamps',
  hasHeader: false,
  parse(line) {
    const at = parseTimestamp(line)
    return at === undefined ? undefined : { at }
  },
}

const accessLog: RecordedFormat = { name: 'access log', hasHeader: false, parse: parseAccessLogLine }

const jsonLines: RecordedFormat = {
  name: 'JSON lines',
  hasHeader: false,
  parse(line) {
    if (!line.trimStart().startsWith('{')) return undefined
    const found = new Map<FieldName, unknown>()
    try {
      for (const [name, value] of Object.entries(JSON.parse(line) as object)) {
        const field = fieldOf(name)
        if (field !== undefined && !found.has(field)) found.set(field, value)
      }
    } catch {
      return undefined
    }
    return arrivalOf((field) => found.get(field))
  },
}

/** The format in which most of these lines can be read, or undefined when it is not even half of them. */
export function detectFormat(lines: readonly string[]): RecordedFormat | undefined {
  let best: RecordedFormat | undefined
  let most = lines.length / 2
  for (const format of [timestamps, jsonLines, accessLog, ...csvFormats(lines)]) {
    const expected = format.hasHeader ? lines.slice(1) : lines
    const read = expected.filter((line) => format.parse(line) !== undefined).length + (format.hasHeader ? 1 : 0)
    // Half is enough, more than half is not needed: a header over one row of data is a recording too.
    if (read > most || (best === undefined && read > 0 && read >= most)) {
      best = format
      most = read
    }
  }
  return best
}

function* csvFormats(lines: readonly string[]): Generator<RecordedFormat> {
  const [first = '', second = ''] = lines
  for (const separator of [',', ';', '\t']) {
    const header = splitRow(first, separator)
    const columns = new Map<FieldName, number>()
    header.forEach((name, index) => {
      const field = fieldOf(name)
      if (field !== undefined && !columns.has(field)) columns.set(field, index)
    })
    if (columns.has('time')) yield csv(separator, columns, true)
    // Without a header only the time can be told from its looks.
    const index = splitRow(second || first, separator).findIndex((cell) => parseTimestamp(cell) !== undefined)
    if (header.length > 1 && index >= 0) yield csv(separator, new Map([['time', index]]), false)
  }
}

function csv(separator: string, columns: ReadonlyMap<FieldName, number>, hasHeader: boolean): RecordedFormat {
  return {
    name: 'CSV',
    hasHeader,
    parse(line) {
      const cells = splitRow(line, separator)
      return arrivalOf((field) => {
        const index = columns.get(field)
        return index === undefined ? undefined : cells[index]
      })
    },
  }
}

/** One row; a cell in quotes may hold the separator, and a quote as two. Cells over several lines are not read. */
function splitRow(line: string, separator: string): string[] {
  if (!line.includes('"')) return line.split(separator).map((cell) => cell.trim())
  const cells: string[] = []
  let cell = ''
  let quoted = false
  for (let i = 0; i < line.length; i++) {
    const character = line[i] as string
    if (character === '"' && quoted && line[i + 1] === '"') cell += line[++i]
    else if (character === '"') quoted = !quoted
    else if (character === separator && !quoted) {
      cells.push(cell.trim())
      cell = ''
    } else cell += character
  }
  return [...cells, cell.trim()]
}
