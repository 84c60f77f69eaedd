/** Formats of recorded traffic: timestamps, CSV, JSON lines and access logs. The format is detected from the first lines. */
import type { RequestContext } from '../../core/request-context.js'
import type { Arrival } from '../arrival.js'
import { arrivalOf, type FieldName, fieldOf } from './fields.js'
import { parseTimestamp } from './timestamp.js'

export interface RecordedFormat {
  /** The name for reports. */
  readonly name: string
  /** True if the first line contains the column names. */
  readonly hasHeader: boolean
  /** Returns undefined if the line does not have this format. */
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

/** The common and combined log formats, optionally with a leading virtual host. `-` is a missing value. */
const linePattern =
  /^(?:\S+:\d+ )?([0-9A-Za-z.:_-]+) \S+ (\S+(?: \S+)*?) \[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)"(?: \S+ \S+(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?)?/
const requestPattern = /^([A-Z]+) (\S+)/

function parseAccessLogLine(line: string): Arrival | undefined {
  const match = linePattern.exec(line)
  const at = parseTimestamp(match?.[3])
  if (!match || at === undefined) return undefined
  const [, clientIp, user, , request = '', referer, userAgent] = match
  const [, method, path] = requestPattern.exec(request) ?? []
  const headers = { referer: present(referer), 'user-agent': present(userAgent) }
  const context: RequestContext = { clientIp, userId: present(user), method, path, headers }
  return { at, context }
}

const present = (value: string | undefined): string | undefined => (value === '-' || value === '' ? undefined : value)

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

/** Returns the format that parses the most lines, or undefined if no format parses at least half of them. */
export function detectFormat(lines: readonly string[]): RecordedFormat | undefined {
  let best: RecordedFormat | undefined
  let bestCount = lines.length / 2
  for (const format of [timestamps, jsonLines, accessLog, ...csvFormats(lines)]) {
    const rows = format.hasHeader ? lines.slice(1) : lines
    const count = rows.filter((line) => format.parse(line) !== undefined).length + (format.hasHeader ? 1 : 0)
    // Exactly half is enough for the first candidate, so that a header with a single row is accepted.
    if (count > bestCount || (best === undefined && count > 0 && count >= bestCount)) {
      best = format
      bestCount = count
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
    // Without a header, only the time column can be recognised.
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

/** Splits a row. A quoted cell may contain the separator, and quotes that are doubled. Multi-line cells are not supported. */
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
