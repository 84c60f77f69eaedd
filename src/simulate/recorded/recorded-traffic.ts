/**
 * Arrivals from a recording, read as a stream: a file of any size takes the same memory.
 *
 * Servers write a request down when it ends, so lines are a little out of order. A bounded number of arrivals is held
 * back and sorted; what is later than that is moved to the present, and counted.
 */
import { FluxGateError } from '../../core/errors.js'
import type { Arrival } from '../arrival.js'
import { detectFormat, type RecordedFormat } from './recorded-format.js'

/** What was found in a recording, complete once its arrivals have been read. */
export interface RecordingReport {
  format: string
  lines: number
  /** Lines that could not be read; the first of them by number. */
  badLines: number
  badLineNumbers: number[]
  /** Arrivals so far out of order that their time had to be moved. */
  moved: number
}

const sampleSize = 20
const namedBadLines = 10
const heldBack = 8_192

export interface Recording {
  readonly arrivals: AsyncIterable<Arrival>
  readonly report: RecordingReport
}

/** `source` names the recording in messages. */
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
      const arrival = read(format, line, report.lines, report)
      if (arrival) yield arrival
      continue
    }
    sample.push({ line, number: report.lines })
    if (sample.length < sampleSize) continue
    format = formatOf(sample, source, report)
    yield* readSample(format, sample, report)
    sample = []
  }
  if (format === undefined && sample.length > 0) yield* readSample(formatOf(sample, source, report), sample, report)
}

function formatOf(sample: readonly { line: string }[], source: string, report: RecordingReport): RecordedFormat {
  const format = detectFormat(sample.map(({ line }) => line))
  if (!format)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `${source} is not traffic that can be replayed: its first lines are neither timestamps (epoch milliseconds or ISO 8601), CSV with a time column, JSON lines with a time field, nor an access log.`,
    )
  report.format = format.name
  return format
}

function* readSample(
  format: RecordedFormat,
  sample: readonly { line: string; number: number }[],
  report: RecordingReport,
): Generator<Arrival> {
  for (const [index, { line, number }] of sample.entries()) {
    if (index === 0 && format.hasHeader) continue
    const arrival = read(format, line, number, report)
    if (arrival) yield arrival
  }
}

function read(format: RecordedFormat, line: string, number: number, report: RecordingReport): Arrival | undefined {
  const arrival = format.parse(line)
  if (arrival) return arrival
  report.badLines += 1
  if (report.badLineNumbers.length < namedBadLines) report.badLineNumbers.push(number)
  return undefined
}

async function* inOrder(arrivals: AsyncIterable<Arrival>, report: RecordingReport): AsyncGenerator<Arrival> {
  let held: Arrival[] = []
  let now = 0
  const release = function* (batch: readonly Arrival[]): Generator<Arrival> {
    for (const arrival of batch) {
      if (arrival.at < now) report.moved += 1
      now = Math.max(now, arrival.at)
      yield arrival.at === now ? arrival : { ...arrival, at: now }
    }
  }
  for await (const arrival of arrivals) {
    held.push(arrival)
    if (held.length < heldBack) continue
    held.sort((a, b) => a.at - b.at)
    yield* release(held.slice(0, heldBack / 2))
    held = held.slice(heldBack / 2)
  }
  yield* release(held.sort((a, b) => a.at - b.at))
}
