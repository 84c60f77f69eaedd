/** Converts the options of `simulate` into synthetic arrivals and a description of them. */
import { seededRandom } from '../../../core/seeded-random.js'
import { type Arrival, burst, type Distribution, poisson, uniform } from '../../../simulate/index.js'
import { UsageError } from '../../failure.js'
import { formatDuration } from '../../output/format-duration.js'
import { serviceText } from './service-time.js'

/** Durations are in ticks, rates per second. Undefined options were not given. */
export interface TrafficOptions {
  readonly traffic?: 'uniform' | 'poisson' | 'burst'
  readonly rate?: number
  readonly burst?: number
  readonly every?: number
  readonly spread?: number
  /** Since the epoch. */
  readonly startAt?: number
  readonly startOffset?: number
  readonly duration?: number
  /** The mean. */
  readonly serviceTime?: number
  readonly serviceDistribution?: Distribution
  readonly seed: number
}

export interface SyntheticTraffic {
  readonly description: string
  readonly arrivals: Iterable<Arrival>
  /** The end of the simulated time, in ticks since the epoch. */
  readonly until: number
}

/** Bounds the run time of a simulation. */
const maxArrivals = 200_000_000

export function syntheticTraffic(options: TrafficOptions, capacity: number, windowTicks: number): SyntheticTraffic {
  const length = options.duration ?? 6 * windowTicks
  const { traffic = options.rate === undefined ? 'burst' : 'uniform', startAt = 0, ...details } = options
  const until = startAt + length
  rejectUnused(traffic, details)
  const shown = (ticks: number): string => (ticks === 0 ? '0s' : formatDuration(ticks / 1000))
  const suffix = `${startAt === 0 ? '' : `, start ${new Date(startAt / 1000).toISOString()}`}${serviceText(options)}`
  if (traffic === 'burst') {
    const { size, every, spread, from } = burstsOf(details, capacity, windowTicks)
    rejectTooMany((size * length) / every)
    const over = spread > 0 ? ` over ${shown(spread)}` : ' at once'
    const description = `bursts of ${size}${over}, every ${shown(every)} from ${shown(from)}${suffix}`
    return { description, until, arrivals: burst({ size, every, spread }, { from: startAt + from, until }) }
  }
  // By default 1.5 times the limit, so that some requests are rejected.
  const rate = details.rate ?? (1.5 * capacity * 1e6) / windowTicks
  const span = { from: startAt + (details.startOffset ?? 0), until }
  rejectTooMany((rate * length) / 1e6)
  const perSecond = `${Number(rate.toPrecision(4))}/s`
  if (traffic === 'uniform')
    return { description: `uniform ${perSecond}${suffix}`, until, arrivals: uniform(rate, span) }
  const arrivals = poisson(rate, span, seededRandom(details.seed))
  return { description: `poisson ${perSecond}, seed ${details.seed}${suffix}`, until, arrivals }
}

/**
 * The default bursts show the weakness of fixed windows: each has twice the capacity and lies half before and half after a
 * window boundary.
 */
function burstsOf(options: Omit<TrafficOptions, 'traffic'>, capacity: number, windowTicks: number) {
  const { burst: size, every, spread, startOffset } = options
  if ([size, every, spread, startOffset].every((value) => value === undefined)) {
    const fifth = Math.floor(windowTicks / 5)
    return { size: 2 * capacity, every: 2 * windowTicks, spread: fifth, from: windowTicks - Math.floor(fifth / 2) }
  }
  return {
    size: size ?? 2 * capacity,
    every: every ?? 2 * windowTicks,
    spread: spread ?? 0,
    from: startOffset ?? 0,
  }
}

/** Throws if an option does not apply to the kind of traffic, instead of ignoring it. */
function rejectUnused(traffic: string, { rate, burst, every, spread }: Omit<TrafficOptions, 'traffic'>): void {
  const isGiven = traffic === 'burst' ? rate !== undefined : [burst, every, spread].some((value) => value !== undefined)
  if (!isGiven) return
  throw new UsageError(
    traffic === 'burst'
      ? '--rate applies to uniform and poisson traffic. Use --burst and --every for bursts.'
      : `--burst, --every and --spread apply to burst traffic. Use --rate for ${traffic} traffic.`,
  )
}

function rejectTooMany(arrivals: number): void {
  if (arrivals <= maxArrivals) return
  throw new UsageError(
    `The simulation would have ${Math.round(arrivals)} requests; the maximum is ${maxArrivals}. Use a shorter --duration or a lower rate.`,
  )
}
