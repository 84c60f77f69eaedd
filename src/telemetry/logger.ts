/** A logger that writes one line per message, without control characters and without passwords in URLs, whatever the message contains. */

const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

type LogFields = Readonly<Record<string, unknown>>
export type Logger = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>

export interface LoggerOptions {
  /** Minimum level. Default: info. */
  readonly level?: LogLevel
  /** `json`: one JSON document per line. `text`: human-readable. */
  readonly format: 'json' | 'text'
  /** Receives a line including its line break. */
  readonly write: (line: string) => void
  /** Returns epoch milliseconds. */
  readonly now?: () => number
}

export function createLogger({ level = 'info', format, write, now = Date.now }: LoggerOptions): Logger {
  const minimum = logLevels.indexOf(level)
  const line = format === 'json' ? jsonLine : textLine
  const at = (lineLevel: LogLevel) =>
    logLevels.indexOf(lineLevel) < minimum
      ? () => {}
      : (message: string, fields: LogFields = {}) => write(`${line(new Date(now()), lineLevel, message, fields)}\n`)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

const jsonLine = (time: Date, level: LogLevel, message: string, fields: LogFields): string =>
  // Fields cannot override time, level and message.
  serialized({ time: time.toISOString(), level, message, ...without(fields, ['time', 'level', 'message']) })

function textLine(time: Date, level: LogLevel, message: string, fields: LogFields): string {
  const shown = Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined) return []
    return [`${name}=${typeof value === 'string' && /^[\w./:@-]+$/.test(value) ? sanitized(value) : serialized(value)}`]
  })
  const text = serialized(message).slice(1, -1).replaceAll('\\"', '"')
  return [time.toTimeString().slice(0, 8), level, text, ...shown].join(' ')
}

const without = (fields: LogFields, names: readonly string[]): LogFields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

/** JSON in which control characters, line separators and text direction marks are escaped too. */
function serialized(value: unknown): string {
  try {
    const text = JSON.stringify(value, (_, member: unknown) => plain(member)) ?? 'null'
    return text.replaceAll(
      /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
  } catch {
    return '"(not serializable)"'
  }
}

const maxLength = 8_192

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Error) return sanitized(value.message)
  return typeof value === 'string' ? sanitized(value) : value
}

/** Limits the length and masks the user and password of URLs. */
function sanitized(text: string): string {
  const safe = text.replaceAll(/(\w:\/\/)[^\s/]*@/g, '$1***@')
  return safe.length > maxLength ? `${safe.slice(0, maxLength)}…` : safe
}
