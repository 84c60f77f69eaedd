import { createReadStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { abortSignal, boolean, callback, codeValue, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { argumentInvalid, checkArgument } from '../../validation/options.js'
import { object } from '../../validation/structures.js'
import { type RedisOptions, redisTarget } from '../client/open/target.js'
import {
  type BulkInput as BulkChunks,
  type BulkDestination,
  type BulkOptions,
  type BulkReport,
  bulkFormats,
  bulkLoad as loadInto,
} from './bulk-load.js'

/**
 * Input of a bulk load: the path of a file or its bytes, optionally gzipped, with a `format`; or an iterable of Redis commands
 * without a `format`.
 */
export type BulkInput = string | BulkChunks

/**
 * Loads records into Redis. Resolves with a report even if some records fail or the connection is lost halfway. Rejects if the
 * options are invalid or Redis cannot be reached.
 *
 * @param redis a `redis://` or `rediss://` URI, or connection options
 * @example
 * const report = await bulkLoad('redis://127.0.0.1:6379', 'users.csv', {
 *   format: 'csv',
 *   command: 'HSET user:<id> name <name>',
 * })
 */
export function bulkLoad(
  redis: string | RedisOptions,
  input: BulkInput,
  options: BulkOptions = {},
): Promise<BulkReport> {
  return run(() => redisTarget(typeof redis === 'string' ? { uri: redis } : redis), input, options)
}

/** Writes the commands to a stream in the Redis protocol, for `redis-cli --pipe`. Does not end the stream. */
export function bulkEmit(stream: Writable, input: BulkInput, options: BulkOptions = {}): Promise<BulkReport> {
  return run(() => ({ kind: 'stream', stream }), input, options)
}

/** Validates all records without sending them. The report lists the invalid ones. */
export function bulkCheck(input: BulkInput, options: BulkOptions = {}): Promise<BulkReport> {
  return run(() => ({ kind: 'nowhere' }), input, options)
}

async function run(destination: () => BulkDestination, input: BulkInput, options: BulkOptions): Promise<BulkReport> {
  checkArgument('options', options, bulkOptions)
  if (typeof input === 'string' && options.format === undefined)
    throw argumentInvalid('options.format', undefined, `one of ${bulkFormats.join(', ')} if the input is a file`)
  checkArgument('input', input, readable)
  return loadInto(destination(), chunksOf(input), options)
}

export const chunksOf = (input: BulkInput): BulkChunks => (typeof input === 'string' ? fileChunks(input) : input)

const readable = codeValue<BulkInput>(
  'a file path, bytes with a format, or an iterable of commands',
  (input) =>
    typeof input === 'string' ||
    (typeof input === 'object' && input !== null && (Symbol.asyncIterator in input || Symbol.iterator in input)),
)

const bulkOptions = object(
  {},
  {
    format: oneOf(bulkFormats),
    command: text,
    delimiter: text,
    fromLine: wholeNumber(1, Number.MAX_SAFE_INTEGER),
    fast: boolean,
    ratePerSecond: wholeNumber(1, 1_000_000_000),
    maxFailures: wholeNumber(0, 1_000_000),
    silenceMs: wholeNumber(1, 86_400_000),
    signal: abortSignal,
    onProgress: callback,
  },
)

async function* fileChunks(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Buffer>
  } catch (cause) {
    throw new FluxGateError('FLUXGATE_BULK_INPUT_INVALID', `Cannot read ${path}: ${messageOf(cause)}.`, { cause })
  }
}
