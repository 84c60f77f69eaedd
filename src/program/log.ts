import type { Config } from '../config/config.js'
import { createLogger, type Logger } from '../telemetry/logger.js'

/** The log of the program, on standard error. `auto` writes text on a terminal and JSON otherwise. */
export function openLog({ log: { level, format } }: Pick<Config, 'log'>): Logger {
  const chosen = format === 'auto' ? (process.stderr.isTTY ? 'text' : 'json') : format
  return createLogger({ level, format: chosen, write: (line) => process.stderr.write(line) })
}

export type { Logger }
