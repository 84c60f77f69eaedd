import { FluxGateError } from '../../core/errors.js'
import type { Reply } from './sinks/reply-reader.js'

/** A record that was not loaded, because it is invalid or the server rejected it. */
export interface BulkFailure {
  /** The line where the record starts in the input, counted from 1. */
  readonly line: number
  /** The validation error or the error reply of the server. */
  readonly message: string
}

/** Record counts of a bulk load. */
export interface BulkProgress {
  /** The number of records read. */
  readonly records: number
  /** The number of records that the server accepted. */
  readonly done: number
  /** The number of records that were invalid or rejected. */
  readonly failed: number
}

const maxMessageLength = 300

export class Tally implements BulkProgress {
  records = 0
  done = 0
  failed = 0
  /** The sum of all integer replies: the number of new fields, members or keys. */
  sum = 0
  readonly failures: BulkFailure[] = []
  readonly #maxFailures: number

  constructor(maxFailures: number) {
    this.#maxFailures = maxFailures
  }

  /** Counts a reply to a command that contains `records` records. */
  succeed(reply: Reply, records: number): void {
    this.done += records
    if (typeof reply === 'number') this.sum += reply
  }

  fail(line: number, message: string, records = 1): void {
    this.failed += records
    if (this.failures.length >= this.#maxFailures) return
    const isLong = message.length > maxMessageLength
    this.failures.push({ line, message: isLong ? `${message.slice(0, maxMessageLength)}…` : message })
  }
}

/** Error replies that concern the server, not a single record. */
const serverErrors = /^(LOADING|READONLY|MISCONF|OOM|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|NOAUTH)\b/

export const isServerFailure = (message: string): boolean => serverErrors.test(message)

/** The error of a load that stopped before the end of its input. */
export const stopped = (reason: string, cause?: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_BULK_STOPPED', `The load was stopped: ${reason}.`, { cause })
