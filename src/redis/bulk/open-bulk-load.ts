import { createReadStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { given } from '../../core/omit-undefined.js'
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

/** The path of a file or its bytes, packed with gzip or not, with a `format`; or commands, without one. */
export type BulkInput = string | BulkChunks

/**
 * Loads records into Redis. Resolves with what became of them, even if some fail or the server goes away in the middle.
 * Rejects if it cannot begin: with options that are mistaken, or without a connection.
 */
export function bulkLoad(
  redis: string | RedisOptions,
  input: BulkInput,
  options: BulkOptions = {},
): Promise<BulkReport> {
  return run(() => redisTarget(typeof redis === 'string' ? { uri: redis } : redis), input, options)
}

/** Writes the commands to a stream instead, as `redis-cli --pipe` reads them. The stream is left open. */
export function bulkEmit(stream: Writable, input: BulkInput, options: BulkOptions = {}): Promise<BulkReport> {
  return run(() => ({ kind: 'stream', stream }), input, options)
}

/** Reads all records and does nothing with them: what is wrong with each is in the report. */
export function bulkCheck(input: BulkInput, options: BulkOptions = {}): Promise<BulkReport> {
  return run(() => ({ kind: 'nowhere' }), input, options)
}

async function run(destination: () => BulkDestination, input: BulkInput, options: BulkOptions): Promise<BulkReport> {
  checkOptions(options)
  if (typeof input === 'string' && options.format === undefined)
    throw invalid('format', undefined, `one of ${bulkFormats.join(', ')}, for a file`)
  if (!isReadable(input)) throw invalid('input', input, 'the path of a file, bytes with a format, or commands')
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
  for (const [name, value] of Object.entries(given(options))) {
    if (!names.includes(name)) throw invalid('options', name, names.join(', '))
    if (!Object.hasOwn(kinds, name)) continue
    const { parse, allowed } = kinds[name as keyof typeof kinds]
    if (parse(value) === undefined) throw invalid(name, value, allowed)
  }
}

const invalid = (name: string, found: unknown, allowed: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `${name}: found ${found === undefined ? 'nothing' : JSON.stringify(found)}; allowed: ${allowed}.`,
  )

async function* fileChunks(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Buffer>
  } catch (cause) {
    throw new FluxGateError('FLUXGATE_BULK_INPUT_INVALID', `${path} cannot be read: ${messageOf(cause)}.`, { cause })
  }
}
