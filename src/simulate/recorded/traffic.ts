/**
 * Streams arrivals from a recording in constant memory.
 *
 * Servers log a request when it ends, so lines are slightly out of order. A bounded number of arrivals is buffered and sorted.
 * Arrivals that are further out of order are moved to the current time and counted.
 */
import { FluxGateError } from '../../core/errors.js'
import type { Arrival } from '../arrival.js'
import { detectFormat, type RecordedFormat } from './format.js'

/** Statistics of a recording, complete once all arrivals have been read. */
export interface RecordingReport {
  format: string
  lines: number
  /** The number of lines that could not be parsed. */
  badLines: number
  /** The line numbers of the first bad lines. */
  badLineNumbers: number[]
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

/** Reads recorded traffic. `source` is the name of the recording in error messages. */
export function recordedTraffic(lines: AsyncIterable<string> | Iterable<string>, source: string): Recording {
  const report: RecordingReport = { format: 'empty', lines: 0, badLines: 0, badLineNumbers: [], moved: 0 }
  return { report, arrivals: inOrder(parsed(lines, source, report), report) }
}

async function* parsed(
  lines: AsyncIterable<string> | Iterable<string>,
  source: string,
  report: RecordingReport,
): AsyncGenerator<Arrival> {
  let sample: { line: string; number: number }[] = []
  let format: RecordedFormat | undefined
  for await (const line of lines) {
    report.lines += 1
    if (line.trim() === '' || line.startsWith('#')) continue
    if (format) {
      const arrival = parseLine(format, line, report.lines, report)
      if (arrival) yield arrival
      continue
    }
    sample.push({ line, number: report.lines })
    if (sample.length < sampleSize) continue
    format = formatOf(sample, source, report)
    yield* parseSample(format, sample, report)
    sample = []
  }
  if (format === undefined && sample.length > 0) yield* parseSample(formatOf(sample, source, report), sample, report)
}

function formatOf(sample: readonly { line: string }[], source: string, report: RecordingReport): RecordedFormat {
  const format = detectFormat(sample.map(({ line }) => line))
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
  if (arrival) return arrival
  report.badLines += 1
  if (report.badLineNumbers.length < maxBadLineNumbers) report.badLineNumbers.push(number)
  return undefined
}

async function* inOrder(arrivals: AsyncIterable<Arrival>, report: RecordingReport): AsyncGenerator<Arrival> {
  let buffer: Arrival[] = []
  let now = 0
  const release = function* (batch: readonly Arrival[]): Generator<Arrival> {
    for (const arrival of batch) {
      if (arrival.at < now) report.moved += 1
      now = Math.max(now, arrival.at)
      yield arrival.at === now ? arrival : { ...arrival, at: now }
    }
  }
  for await (const arrival of arrivals) {
    buffer.push(arrival)
    if (buffer.length < sortBufferSize) continue
    buffer.sort((a, b) => a.at - b.at)
    yield* release(buffer.slice(0, sortBufferSize / 2))
    buffer = buffer.slice(sortBufferSize / 2)
  }
  yield* release(buffer.sort((a, b) => a.at - b.at))
}
