import type { Writable } from 'node:stream'
import { FluxGateError } from '../../core/errors.js'
import { parseTemplate } from './commands/command-template.js'
import { type Command, CommandWriter } from './commands/command-writer.js'
import { GivenCommands } from './commands/given-commands.js'
import { plainCommands } from './commands/plain-commands.js'
import { load } from './load.js'
import { csvRecords } from './records/csv-records.js'
import { jsonRecords } from './records/json-records.js'
import type { RecordFormat, RecordSource } from './records/record-source.js'
import { TextRecords } from './records/text-records.js'
import { unpacked } from './records/unpacked.js'
import { type BulkTarget, openSink } from './sinks/open-sink.js'
import type { BulkSink } from './sinks/sink.js'
import { StreamSink } from './sinks/stream-sink.js'
import { type BulkFailure, type BulkProgress, stopped, Tally } from './tally.js'

export const bulkFormats = ['commands', 'csv', 'jsonl'] as const
export type BulkFormat = (typeof bulkFormats)[number]

export interface BulkOptions {
  /** How the bytes of the input are spelt. Left out: the input is not bytes, but commands one after the other. */
  readonly format?: BulkFormat | RecordFormat
  /** CSV and JSON lines: what is made of each record, such as `HSET user:<id> name <name>`. Left out: a record is a command. */
  readonly command?: string
  /** CSV: what separates the fields; default a comma. */
  readonly delimiter?: string
  /** The line, or the number of the command, to begin with; default 1. */
  readonly fromLine?: number
  /** For a server with nothing else to do. Default: at most 128 replies are outstanding, with short breaks. */
  readonly fast?: boolean
  /** Records a second at most. */
  readonly ratePerSecond?: number
  /** How many failures are listed; all are counted. Default 100. */
  readonly maxFailures?: number
  /** How long the server may say nothing while replies are outstanding; default 10 000. */
  readonly silenceMs?: number
  /** Takes no more records once it aborts. */
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: BulkProgress) => void
}

export interface BulkReport extends BulkProgress {
  /** The first `maxFailures` that were noticed, by line. */
  readonly failures: readonly BulkFailure[]
  /** Of replies that are numbers, their sum: how many fields of hashes, members of sets or keys are new. */
  readonly created: number
  readonly elapsedMs: number
  /** Why it did not come to the end of the input. */
  readonly stoppedBy?: FluxGateError
  /** Then: every record before this line has been answered, and later ones may have been carried out too. */
  readonly resumeFromLine?: number
}

/** Bytes in a format, packed with gzip or not; without a format, commands. */
export type BulkInput = AsyncIterable<Uint8Array> | AsyncIterable<Command> | Iterable<Command>

/** Where the commands go: a Redis; a stream, as `redis-cli --pipe` reads them; or nowhere, to see whether they are in order. */
export type BulkDestination =
  | BulkTarget
  | { readonly kind: 'stream'; readonly stream: Writable }
  | { readonly kind: 'nowhere' }

/**
 * Loads many records. Resolves even if some of them fail, or if the server goes away in the middle: the report says what
 * has become of them. Rejects if it cannot begin.
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
    // What cannot be read from its very beginning is a mistake of whoever asks, not a load that was stopped.
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
  if (format === undefined) return new GivenCommands(input as AsyncIterable<Command> | Iterable<Command>, fromLine)
  const chunks = unpacked(input as AsyncIterable<Uint8Array>)
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
