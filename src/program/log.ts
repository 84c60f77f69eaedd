import type { Config } from '../config/config.js'
import { createLogger, type Logger } from '../telemetry/logger.js'

/** The log of a program: to standard error, as text where a person looks at it. */
export function openLog({ log: { level, format } }: Pick<Config, 'log'>): Logger {
  const chosen = format === 'auto' ? (process.stderr.isTTY ? 'text' : 'json') : format
  return createLogger({ level, format: chosen, write: (line) => process.stderr.write(line) })
}

export type { Logger }
