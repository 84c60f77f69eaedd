import type { ErrorCode } from '../core/errors.js'
import { emitWarning } from '../core/runtime/emit-warning.js'

/** Receives warnings. `console` and most loggers fit. */
export interface WarningLogger {
  /** Logs a warning. `code` is the same for all warnings of one kind. */
  warn(message: string, fields: { readonly code: ErrorCode }): void
}

/** Bounds the memory for warnings that were logged. */
const maxLogged = 1_000

/**
 * Warnings about likely misconfigurations that are noticed only while requests are decided. Each is counted every time and logged
 * once: by the logger, or else as a process warning.
 */
export class Warnings {
  readonly #logger: WarningLogger | undefined
  readonly #logged = new Set<string>()
  readonly #counts: Partial<Record<ErrorCode, number>> = {}

  constructor(logger?: WarningLogger) {
    this.#logger = logger
  }

  /** The number of occurrences by code. */
  get counts(): Readonly<Partial<Record<ErrorCode, number>>> {
    return this.#counts
  }

  /** `subject` identifies what is logged once. By default it is the message; pass the code where clients determine the message. */
  warn(code: ErrorCode, message: string, subject = message): void {
    this.#counts[code] = (this.#counts[code] ?? 0) + 1
    if (this.#logged.has(subject) || this.#logged.size === maxLogged) return
    this.#logged.add(subject)
    const text = `${message} See docs/reference/errors.md.`
    if (this.#logger === undefined) emitWarning(text, { type: 'FluxGateWarning', code })
    else this.#logger.warn(text, { code })
  }
}
