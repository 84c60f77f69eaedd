import type { Writable } from 'node:stream'
import { FluxGateError } from '../../core/errors.js'
import type { RedisTarget } from '../client/open/target.js'
import { plainCommands } from './commands/plain-commands.js'
import { CommandSource } from './commands/source.js'
import { parseTemplate } from './commands/template.js'
import { type Command, CommandWriter } from './commands/writer.js'
import { load } from './load.js'
import { csvRecords } from './records/csv-records.js'
import { gunzipIfNeeded } from './records/gunzip.js'
import { jsonRecords } from './records/json-records.js'
import type { RecordFormat, RecordSource } from './records/record-source.js'
import { TextRecords } from './records/text-records.js'
import { openSink } from './sinks/open-sink.js'
import type { BulkSink } from './sinks/sink.js'
import { StreamSink } from './sinks/stream-sink.js'
import { type BulkFailure, type BulkProgress, stopped, Tally } from './tally.js'

export const bulkFormats = ['commands', 'csv', 'jsonl'] as const
/** Input formats: redis-cli command lines, comma-separated values, or one JSON document per line. */
export type BulkFormat = (typeof bulkFormats)[number]

/** Options of `bulkLoad`, `bulkEmit` and `bulkCheck`. */
export interface BulkOptions {
  /** The format of the input. Required for a file or bytes; omit it if the input is an iterable of commands. */
  readonly format?: BulkFormat | RecordFormat
  /**
   * For CSV and JSON lines: the command template, such as `HSET user:<id> name <name>`. Without it, each record is itself a
   * command.
   */
  readonly command?: string
  /** For CSV: the field delimiter, a single byte. Default: a comma. */
  readonly delimiter?: string
  /** The line, or the number of the command, to start from. Default: 1. */
  readonly fromLine?: number
  /**
   * Loads at full speed, for a server without other load. Default: false, which limits the load to 128 outstanding replies
   * and pauses regularly.
   */
  readonly fast?: boolean
  /** The maximum number of records per second. Default: unlimited. */
  readonly ratePerSecond?: number
  /** The maximum number of failures that the report lists. All failures are counted. Default: 100. */
  readonly maxFailures?: number
  /** The load stops if outstanding replies do not arrive for this time, in milliseconds. Default: 10,000. */
  readonly silenceMs?: number
  /** Stops reading records when aborted. Replies in flight are still awaited. */
  readonly signal?: AbortSignal
  /** Called about every 100 ms and once at the end. */
  readonly onProgress?: (progress: BulkProgress) => void
}

/** The result of a bulk load. */
export interface BulkReport extends BulkProgress {
  /** The first `maxFailures` failures, sorted by line. */
  readonly failures: readonly BulkFailure[]
  /** The sum of all integer replies: the number of new hash fields, set members or keys. */
  readonly created: number
  /** The duration in milliseconds. */
  readonly elapsedMs: number
  /** The reason why the load stopped before the end of the input. */
  readonly stoppedBy?: FluxGateError
  /**
   * Set with `stoppedBy`: the line to resume from. Every record before it was answered; records after it may have been
   * executed too.
   */
  readonly resumeFromLine?: number
}

/** Bytes in a `format`, optionally gzip-compressed, or commands if there is no `format`. */
export type BulkInput = AsyncIterable<Uint8Array> | AsyncIterable<Command> | Iterable<Command>

/** The destination: Redis, a stream in the Redis protocol as for `redis-cli --pipe`, or nowhere to validate the input. */
export type BulkDestination =
  | RedisTarget
  | { readonly kind: 'stream'; readonly stream: Writable }
  | { readonly kind: 'nowhere' }

/**
 * Loads records. Resolves with a report even if records fail or the connection is lost during the load. Rejects if the load
 * cannot start.
 */
export async function bulkLoad(
  destination: BulkDestination,
  input: BulkInput,
  options: BulkOptions = {},
): Promise<BulkReport> {
  const out = new CommandWriter()
  const tally = new Tally(options.maxFailures ?? 100)
  const source = sourceOf(input, options)
  const sink = await sinkOf(destination, out, tally, options)
  const startedAt = performance.now()
  const { ratePerSecond, signal, onProgress } = options
  try {
    const end = await load(source, out, sink, tally, {
      ratePerSecond,
      isGentle: !options.fast && destination.kind !== 'stream' && destination.kind !== 'nowhere',
      signal,
      onProgress: onProgress && (() => onProgress(progressOf(tally))),
    })
    // If the input is invalid before the first record, the caller passed a wrong input or format, so the load rejects.
    if (end !== undefined && tally.records === 0 && isInputInvalid(end.error)) throw end.error
    return {
      ...progressOf(tally),
      failures: tally.failures.sort((one, other) => one.line - other.line),
      created: tally.sum,
      elapsedMs: performance.now() - startedAt,
      ...(end !== undefined && { stoppedBy: asStop(end.error), resumeFromLine: end.line }),
    }
  } finally {
    sink.close()
  }
}

const progressOf = ({ records, done, failed }: Tally): BulkProgress => ({ records, done, failed })

const isInputInvalid = (error: Error): boolean =>
  error instanceof FluxGateError && error.code === 'FLUXGATE_BULK_INPUT_INVALID'

const asStop = (error: Error): FluxGateError =>
  error instanceof FluxGateError ? error : stopped(error.message.replace(/\.$/, ''), error)

function sinkOf(
  destination: BulkDestination,
  out: CommandWriter,
  tally: Tally,
  { fast = false, silenceMs = 10_000 }: BulkOptions,
): Promise<BulkSink> | BulkSink {
  if (destination.kind === 'nowhere') return new StreamSink(out, tally)
  if (destination.kind === 'stream') return new StreamSink(out, tally, destination.stream)
  return openSink(destination, out, tally, { fast, silenceMs })
}

function sourceOf(input: BulkInput, { format, command, delimiter, fromLine }: BulkOptions): RecordSource {
  if (format === undefined) return new CommandSource(input as AsyncIterable<Command> | Iterable<Command>, fromLine)
  const chunks = gunzipIfNeeded(input as AsyncIterable<Uint8Array>)
  return new TextRecords(chunks, formatOf(format, command, delimiter), { fromLine })
}

function formatOf(
  format: BulkFormat | RecordFormat,
  command: string | undefined,
  delimiter: string | undefined,
): RecordFormat {
  if (typeof format === 'object') return format
  const template = command === undefined ? undefined : parseTemplate(command)
  if (format === 'csv') return csvRecords(template, delimiter)
  return format === 'jsonl' ? jsonRecords(template) : plainCommands()
}
