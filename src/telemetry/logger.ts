/** Log lines that stay lines: whatever a client, a server or a file has put into a message, it is one line and holds no password. */

const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export type LogFields = Readonly<Record<string, unknown>>
export type Logger = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>

export interface LoggerOptions {
  /** The least that is written; default info. */
  readonly level?: LogLevel
  /** One JSON document per line, or text for people. */
  readonly format: 'json' | 'text'
  /** Takes a line with its end. */
  readonly write: (line: string) => void
  /** Epoch milliseconds. */
  readonly now?: () => number
}

export function createLogger({ level = 'info', format, write, now = Date.now }: LoggerOptions): Logger {
  const least = logLevels.indexOf(level)
  const line = format === 'json' ? jsonLine : textLine
  const at = (own: LogLevel) =>
    logLevels.indexOf(own) < least
      ? () => {}
      : (message: string, fields: LogFields = {}) => write(`${line(new Date(now()), own, message, fields)}\n`)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

const jsonLine = (time: Date, level: LogLevel, message: string, fields: LogFields): string =>
  // What a field is called never takes the place of what every line has.
  written({ time: time.toISOString(), level, message, ...without(fields, ['time', 'level', 'message']) })

function textLine(time: Date, level: LogLevel, message: string, fields: LogFields): string {
  const shown = Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined) return []
    return [`${name}=${typeof value === 'string' && /^[\w./:@-]+$/.test(value) ? cleaned(value) : written(value)}`]
  })
  const text = written(message).slice(1, -1).replaceAll('\\"', '"')
  return [time.toTimeString().slice(0, 8), level, text, ...shown].join(' ')
}

const without = (fields: LogFields, names: readonly string[]): LogFields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

/** JSON, in which also those characters are escaped that some readers take for the end of a line, or obey. */
function written(value: unknown): string {
  try {
    const text = JSON.stringify(value, (_, member: unknown) => plain(member)) ?? 'null'
    return text.replaceAll(
      /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
  } catch {
    return '"(cannot be written)"'
  }
}

const longest = 8_192

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Error) return cleaned(value.message)
  return typeof value === 'string' ? cleaned(value) : value
}

/** Bounded, and without what stands between :// and @ in an address. */
function cleaned(text: string): string {
  const safe = text.replaceAll(/(\w:\/\/)[^\s/]*@/g, '$1***@')
  return safe.length > longest ? `${safe.slice(0, longest)}…` : safe
}
