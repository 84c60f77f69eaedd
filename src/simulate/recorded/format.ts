/** Formats of recorded traffic: timestamps, CSV, JSON lines and access logs. The format is detected from the first lines. */
import type { RequestContext } from '../../core/request-context.js'
import type { Costs } from '../../core/rule.js'
import type { Arrival } from '../arrival.js'
import { arrivalOf, costsOf, type FieldName, fieldOf, type RecordedFields } from './fields.js'
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
  /^(?:\S+:\d+ )?([0-9A-Za-z.:_-]+) \S+ (\S+(?: \S+)*?) \[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)"(?: (\S+) (\S+)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?)?/
const requestPattern = /^([A-Z]+) (\S+)/

const accessLog = (fields: RecordedFields): RecordedFormat => ({
  name: 'access log',
  hasHeader: false,
  parse(line) {
    const match = linePattern.exec(line)
    const at = parseTimestamp(match?.[3])
    if (!match || at === undefined) return undefined
    const [, clientIp, user, , request = '', status, bytes, referer, userAgent] = match
    const [, method, path] = requestPattern.exec(request) ?? []
    const headers = { referer: present(referer), 'user-agent': present(userAgent) }
    const context: RequestContext = { clientIp, userId: present(user), method, path, headers }
    if (fields.costFields === undefined) return { at, context }
    const named = (name: string) => (name === 'bytes' ? bytes : name === 'status' ? status : undefined)
    return { at, context, costs: costsOf({ named }, fields) as Costs }
  },
})

const present = (value: string | undefined): string | undefined => (value === '-' || value === '' ? undefined : value)

/** Lines of a log have the same few names, so their fields are cached. */
class FieldCache {
  readonly #fields = new Map<string, FieldName | undefined>()

  of(name: string): FieldName | undefined {
    const known = this.#fields.get(name)
    if (known !== undefined || this.#fields.has(name)) return known
    const field = fieldOf(name)
    if (this.#fields.size < 1_000) this.#fields.set(name, field)
    return field
  }
}

function jsonLines(fields: RecordedFields): RecordedFormat {
  const known = new FieldCache()
  return {
    name: 'JSON lines',
    hasHeader: false,
    parse(line) {
      const value = parseObject(line)
      if (value === undefined) return undefined
      const found: Partial<Record<FieldName, unknown>> = {}
      for (const name in value) {
        const field = known.of(name)
        if (field !== undefined && found[field] === undefined) found[field] = value[name]
      }
      return arrivalOf({ read: (field) => found[field], named: (name) => memberOf(value, name) }, fields)
    },
  }
}

function parseObject(line: string): Record<string, unknown> | undefined {
  if (!line.trimStart().startsWith('{')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** The member with this name, or with this path: `usage.total_tokens`. */
function memberOf(value: Record<string, unknown>, name: string): unknown {
  if (Object.hasOwn(value, name)) return value[name]
  let member: unknown = value
  for (const part of name.split('.')) {
    if (typeof member !== 'object' || member === null || !Object.hasOwn(member, part)) return undefined
    member = (member as Record<string, unknown>)[part]
  }
  return member
}

/** Returns the format that parses the most lines, or undefined if no format parses at least half of them. */
export function detectFormat(lines: readonly string[], fields: RecordedFields = {}): RecordedFormat | undefined {
  let best: RecordedFormat | undefined
  let bestCount = lines.length / 2
  for (const format of [timestamps, jsonLines(fields), accessLog(fields), ...csvFormats(lines, fields)]) {
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

function* csvFormats(lines: readonly string[], fields: RecordedFields): Generator<RecordedFormat> {
  const [first = '', second = ''] = lines
  for (const separator of [',', ';', '\t']) {
    const header = splitRow(first, separator)
    const columns = new Map<FieldName, number>()
    header.forEach((name, index) => {
      const field = fieldOf(name)
      if (field !== undefined && !columns.has(field)) columns.set(field, index)
    })
    if (columns.has('time') || columns.has('requestTime')) yield csv(separator, columns, fields, header)
    // Without a header, only the time column can be recognised.
    const index = splitRow(second || first, separator).findIndex((cell) => parseTimestamp(cell) !== undefined)
    if (header.length > 1 && index >= 0) yield csv(separator, new Map([['time', index]]), fields, undefined)
  }
}

/** `header` contains the names of the columns, if the first line does. */
function csv(
  separator: string,
  columns: ReadonlyMap<FieldName, number>,
  fields: RecordedFields,
  header: readonly string[] | undefined,
): RecordedFormat {
  return {
    name: 'CSV',
    hasHeader: header !== undefined,
    parse(line) {
      const cells = splitRow(line, separator)
      const cell = (index = -1): string | undefined => cells[index]
      return arrivalOf(
        { read: (field) => cell(columns.get(field)), named: (name) => cell(header?.indexOf(name)) },
        fields,
      )
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
