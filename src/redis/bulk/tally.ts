import { FluxGateError } from '../../core/errors.js'
import type { Reply } from './sinks/reply-reader.js'

/** A record that did not arrive, and why: its own mistake, or what the server said. */
export interface BulkFailure {
  /** Where the record begins in the input, from 1. */
  readonly line: number
  readonly message: string
}

/** What has become of the records so far. */
export interface BulkProgress {
  /** Read, whatever became of them. */
  readonly records: number
  /** Answered by the server, and not with an error. */
  readonly done: number
  readonly failed: number
}

const longestMessage = 300

export class Tally implements BulkProgress {
  records = 0
  done = 0
  failed = 0
  /** Of replies that are numbers: how many fields, members or keys are new. */
  sum = 0
  readonly failures: BulkFailure[] = []
  readonly #mostFailures: number

  /** So many failures are listed, and all are counted. */
  constructor(mostFailures: number) {
    this.#mostFailures = mostFailures
  }

  /** What was answered is made of so many records. */
  succeed(reply: Reply, records: number): void {
    this.done += records
    if (typeof reply === 'number') this.sum += reply
  }

  fail(line: number, message: string, records = 1): void {
    this.failed += records
    if (this.failures.length >= this.#mostFailures) return
    const isLong = message.length > longestMessage
    this.failures.push({ line, message: isLong ? `${message.slice(0, longestMessage)}…` : message })
  }
}

/** It is the server that takes no more, not one record that is wrong. */
const serverTrouble = /^(LOADING|READONLY|MISCONF|OOM|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|NOAUTH)\b/

export const isServerTrouble = (message: string): boolean => serverTrouble.test(message)

/** Ends a load before its time. */
export const stopped = (reason: string, cause?: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_BULK_STOPPED', `The load was stopped: ${reason}.`, { cause })
