/**
 * Runs several bands independently over the same arrivals. Time is virtual, so that a day of traffic takes only as long as its
 * decisions.
 */
import { createBuckets, Rows } from '../algorithms/index.js'
import { newStep } from '../core/algorithm.js'
import { ticksPerMs } from '../core/clock.js'
import type { Band } from '../core/rule.js'
import type { Arrivals } from './arrival.js'
import { Meter, type Totals } from './meter.js'
import type { TimeBucket } from './time-series.js'

export interface Run extends Totals {
  readonly buckets: readonly TimeBucket[]
}

export interface BandRun extends Run {
  readonly band: Band
}

export interface Simulation {
  /** Epoch milliseconds of the first bucket. Synthetic traffic starts at 0. */
  readonly startAtMs: number
  readonly bucketMs: number
  readonly windowMs: number
  /** All arrivals, without a limit. */
  readonly offered: Run
  readonly runs: readonly BandRun[]
}

/** The start and end of the simulated time in ticks. Default: the first and the last arrival. */
export interface SimulatedSpan {
  readonly startAt?: number
  readonly until?: number
}

export async function simulateBands(
  bands: readonly Band[],
  arrivals: Arrivals,
  span: SimulatedSpan = {},
): Promise<Simulation> {
  const window = Math.max(...bands.map((band) => band.windowTicks))
  let meters: { offered: Meter; limiters: Limiter[] } | undefined
  let last = span.startAt ?? 0
  for await (const { at } of arrivals) {
    meters ??= createMeters(bands, span.startAt ?? at, window)
    last = at
    meters.offered.allowed(at, 0)
    for (const limiter of meters.limiters) limiter.arrive(at)
  }
  const { offered, limiters } = meters ?? createMeters(bands, last, window)
  const all = [offered, ...limiters.map((limiter) => limiter.meter)]
  const bucketMs = finish(all, Math.max(last, (span.until ?? 0) - 1))
  const runs = limiters.map(({ band, meter }) => ({ band, ...runOf(meter) }))
  return {
    startAtMs: offered.series.startAt / ticksPerMs,
    bucketMs,
    windowMs: window / ticksPerMs,
    offered: runOf(offered),
    runs,
  }
}

/** Advances all meters to the same end and bucket width. Returns the bucket width in milliseconds. */
export function finish(meters: readonly Meter[], until: number): number {
  const lengthOf = ({ series }: Meter): number => series.startAt + series.buckets.length * series.width
  for (const meter of meters) meter.finish(until)
  const end = Math.max(...meters.map(lengthOf))
  for (const meter of meters) meter.finish(end - 1)
  const width = Math.max(...meters.map(({ series }) => series.width))
  for (const { series } of meters) series.widenTo(width)
  return width / ticksPerMs
}

export const runOf = (meter: Meter): Run => ({ ...meter.totals(), buckets: meter.series.buckets })

interface Limiter {
  readonly band: Band
  readonly meter: Meter
  arrive(at: number): void
}

function createMeters(bands: readonly Band[], startAt: number, window: number) {
  const limiters = bands.map((band) => createLimiter(band, new Meter(startAt, band.windowTicks)))
  return { offered: new Meter(startAt, window), limiters }
}

/** A limiter with a single bucket that all arrivals are charged to. */
function createLimiter(band: Band, meter: Meter): Limiter {
  const buckets = createBuckets(band, new Rows())
  const step = newStep()
  return {
    band,
    meter,
    arrive(at) {
      buckets.step(0, band, 1, at, 0, step)
      if (step.changes) buckets.write(0, step.next)
      if (step.allowed) meter.allowed(at, step.delay)
      else meter.rejected(at)
    },
  }
}
