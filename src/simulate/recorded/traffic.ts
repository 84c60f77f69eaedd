/**
 * Streams arrivals from a recording in constant memory.
 *
 * Servers log a request when it ends, so lines are slightly out of order. A bounded number of arrivals is buffered and sorted.
 * Arrivals that are further out of order are moved to the current time and counted.
 */
import { FluxGateError } from '../../core/errors.js'
import type { Arrival } from '../arrival.js'
import type { RecordedFields } from './fields.js'
import { detectFormat, type RecordedFormat } from './format.js'

/** Statistics of a recording, complete once all arrivals have been read. */
export interface RecordingReport {
  format: string
  lines: number
  /** The number of lines that could not be parsed. */
  badLines: number
  /** The line numbers of the first bad lines. */
  badLineNumbers: number[]
  /** The number of requests with a duration. */
  withDuration: number
  /** The number of arrivals whose time was moved because they were too far out of order. */
  moved: number
}

const sampleSize = 20
const maxBadLineNumbers = 10
const sortBufferSize = 8_192

export interface Recording {
  readonly arrivals: AsyncIterable<Arrival>
  readonly report: RecordingReport
}

export type RecordingOptions = RecordedFields

/** Batches of lines, as `readLines` returns them. */
export type LineBatches = AsyncIterable<readonly string[]> | Iterable<readonly string[]>

/** Reads recorded traffic. `source` is the name of the recording in error messages. */
export function recordedTraffic(batches: LineBatches, source: string, options: RecordingOptions = {}): Recording {
  const report = { format: 'empty', lines: 0, badLines: 0, badLineNumbers: [], withDuration: 0, moved: 0 }
  return { report, arrivals: inOrder(batches, new LineParser(source, report, options), report) }
}

/** Detects the format from the first lines, which are parsed once there are enough of them. */
class LineParser {
  readonly #source: string
  readonly #report: RecordingReport
  readonly #fields: RecordedFields
  #sample: { line: string; number: number }[] = []
  #format: RecordedFormat | undefined

  constructor(source: string, report: RecordingReport, fields: RecordedFields) {
    this.#source = source
    this.#report = report
    this.#fields = fields
  }

  /** Adds the arrivals of a line, if it has any, to `arrivals`. */
  add(line: string, arrivals: Arrival[]): void {
    const report = this.#report
    report.lines += 1
    if (line.startsWith('#') || line.trim() === '') return
    if (this.#format !== undefined) {
      const arrival = parseLine(this.#format, line, report.lines, report)
      if (arrival) arrivals.push(arrival)
      return
    }
    this.#sample.push({ line, number: report.lines })
    if (this.#sample.length === sampleSize) this.finish(arrivals)
  }

  /** Parses the lines of the sample. */
  finish(arrivals: Arrival[]): void {
    if (this.#sample.length === 0) return
    this.#format = formatOf(this.#sample, this.#source, this.#report, this.#fields)
    arrivals.push(...parseSample(this.#format, this.#sample, this.#report))
    this.#sample = []
  }
}

function formatOf(
  sample: readonly { line: string }[],
  source: string,
  report: RecordingReport,
  fields: RecordedFields,
): RecordedFormat {
  const lines = sample.map(({ line }) => line)
  const format = detectFormat(lines, fields)
  if (!format)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `${source} has an unknown format. Its first lines must be timestamps (epoch milliseconds or ISO 8601), CSV with a time column, JSON lines with a time field, or an access log.`,
    )
  report.format = format.name
  return format
}

function* parseSample(
  format: RecordedFormat,
  sample: readonly { line: string; number: number }[],
  report: RecordingReport,
): Generator<Arrival> {
  for (const [index, { line, number }] of sample.entries()) {
    if (index === 0 && format.hasHeader) continue
    const arrival = parseLine(format, line, number, report)
    if (arrival) yield arrival
  }
}

function parseLine(format: RecordedFormat, line: string, number: number, report: RecordingReport): Arrival | undefined {
  const arrival = format.parse(line)
  if (arrival) {
    if (arrival.duration !== undefined) report.withDuration += 1
    return arrival
  }
  report.badLines += 1
  if (report.badLineNumbers.length < maxBadLineNumbers) report.badLineNumbers.push(number)
  return undefined
}

async function* inOrder(batches: LineBatches, parser: LineParser, report: RecordingReport): AsyncGenerator<Arrival> {
  let buffer: Arrival[] = []
  let now = 0
  const release = function* (count: number): Generator<Arrival> {
    buffer.sort((a, b) => a.at - b.at)
    for (const arrival of buffer.slice(0, count)) {
      if (arrival.at < now) report.moved += 1
      now = Math.max(now, arrival.at)
      yield arrival.at === now ? arrival : { ...arrival, at: now }
    }
    buffer = buffer.slice(count)
  }
  for await (const lines of batches)
    for (const line of lines) {
      parser.add(line, buffer)
      if (buffer.length >= sortBufferSize) yield* release(sortBufferSize / 2)
    }
  parser.finish(buffer)
  yield* release(buffer.length)
}
