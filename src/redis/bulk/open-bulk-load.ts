import { createReadStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import { oneOf, wholeNumber } from '../../validation/kinds.js'
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
  checkOptions(options)
  if (typeof input === 'string' && options.format === undefined)
    throw invalid('format', undefined, `one of ${bulkFormats.join(', ')} if the input is a file`)
  if (!isReadable(input)) throw invalid('input', input, 'a file path, bytes with a format, or an iterable of commands')
  return loadInto(destination(), chunksOf(input), options)
}

export const chunksOf = (input: BulkInput): BulkChunks => (typeof input === 'string' ? fileChunks(input) : input)

const isReadable = (input: unknown): boolean =>
  typeof input === 'string' ||
  (typeof input === 'object' && input !== null && (Symbol.asyncIterator in input || Symbol.iterator in input))

const kinds = {
  format: oneOf(bulkFormats),
  fromLine: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  ratePerSecond: wholeNumber(1, 1_000_000_000),
  maxFailures: wholeNumber(0, 1_000_000),
  silenceMs: wholeNumber(1, 86_400_000),
}

const names = [...Object.keys(kinds), 'command', 'delimiter', 'fast', 'signal', 'onProgress']

function checkOptions(options: BulkOptions): void {
  for (const [name, value] of Object.entries(omitUndefined(options))) {
    if (!names.includes(name))
      throw new FluxGateError(
        'FLUXGATE_ARGUMENT_INVALID',
        `Unknown option ${JSON.stringify(name)}. Allowed options: ${names.join(', ')}.`,
      )
    if (!Object.hasOwn(kinds, name)) continue
    const { parse, allowed } = kinds[name as keyof typeof kinds]
    if (parse(value) === undefined) throw invalid(name, value, allowed)
  }
}

const invalid = (name: string, found: unknown, allowed: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `${name} must be ${allowed}; received ${found === undefined ? 'nothing' : JSON.stringify(found)}.`,
  )

async function* fileChunks(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Buffer>
  } catch (cause) {
    throw new FluxGateError('FLUXGATE_BULK_INPUT_INVALID', `Cannot read ${path}: ${messageOf(cause)}.`, { cause })
  }
}
