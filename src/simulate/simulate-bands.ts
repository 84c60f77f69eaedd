/**
 * Runs several bands independently over the same arrivals. Time is virtual, so that a day of traffic takes only as long as its
 * decisions.
 */
import { createBuckets, Rows } from '../algorithms/index.js'
import { newStep } from '../core/algorithm.js'
import { algorithmTraits } from '../core/algorithm-traits.js'
import { ticksPerMs } from '../core/clock.js'
import type { Band } from '../core/rule.js'
import type { Arrivals } from './arrival.js'
import { EventHeap } from './event-heap.js'
import { Meter, type Totals } from './meter.js'
import type { ServiceTime } from './service-time.js'
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

export interface SimulationOptions {
  /** The start of the simulated time in ticks. Default: the first arrival. */
  readonly startAt?: number | undefined
  /** The end of the simulated time in ticks. Default: the last arrival. */
  readonly until?: number | undefined
  /** The durations of arrivals that have none. Without it, nothing is known about the requests in progress. */
  readonly serviceTime?: ServiceTime | undefined
}

export interface BandOptions extends SimulationOptions {
  /** The window of the peaks of CONCURRENCY bands, which have none, in ticks. Default: that of the other bands. */
  readonly window?: number | undefined
}

export async function simulateBands(
  bands: readonly Band[],
  arrivals: Arrivals,
  options: BandOptions = {},
): Promise<Simulation> {
  const window = options.window ?? Math.max(...bands.map((band) => band.windowTicks))
  let meters: { offered: Meter; limiters: Limiter[] } | undefined
  let last = options.startAt ?? 0
  for await (const { at, duration = options.serviceTime?.() } of arrivals) {
    meters ??= createMeters(bands, options.startAt ?? at, window)
    last = at
    meters.offered.allowed(at, 0, duration)
    for (const limiter of meters.limiters) limiter.arrive(at, duration)
  }
  const { offered, limiters } = meters ?? createMeters(bands, last, window)
  const all = [offered, ...limiters.map((limiter) => limiter.meter)]
  const bucketMs = finish(all, Math.max(last, (options.until ?? 0) - 1))
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
  arrive(at: number, duration: number | undefined): void
}

function createMeters(bands: readonly Band[], startAt: number, window: number) {
  const limiters = bands.map((band) =>
    algorithmTraits[band.algorithm].takesHolds
      ? createConcurrencyLimiter(band, new Meter(startAt, window, true))
      : createLimiter(band, new Meter(startAt, band.windowTicks)),
  )
  return { offered: new Meter(startAt, window), limiters }
}

/** A limiter with a single bucket that all arrivals are charged to. */
function createLimiter(band: Band, meter: Meter): Limiter {
  const buckets = createBuckets(band, new Rows())
  const step = newStep()
  return {
    band,
    meter,
    arrive(at, duration) {
      buckets.step(0, band, 1, at, 0, step)
      if (step.changes) buckets.write(0, step.next)
      if (step.allowed) meter.allowed(at, step.delay, duration)
      else meter.rejected(at)
    },
  }
}

/** A limiter of requests in progress. Requests are released when they end, and are renewed for as long as they take. */
function createConcurrencyLimiter(band: Band, meter: Meter): Limiter {
  const buckets = createBuckets(band, new Rows())
  const step = newStep()
  const held = new EventHeap<{ readonly at: number; readonly id: number }>()
  let arrivals = 0
  return {
    band,
    meter,
    arrive(at, duration = 0) {
      for (let ended = held.takeUntil(at); ended !== undefined; ended = held.takeUntil(at))
        buckets.release?.(0, { high: 0, low: ended.id }, ended.at)
      const id = ++arrivals
      buckets.step(0, band, 1, at, 0, step)
      if (!step.allowed) {
        meter.rejected(at)
        return
      }
      buckets.write(0, step.next, { high: 0, low: id })
      held.add({ at: at + duration, id })
      meter.allowed(at, 0, duration)
    },
  }
}
