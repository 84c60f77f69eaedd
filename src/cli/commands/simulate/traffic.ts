/** Options of `simulate` → synthetic arrivals, and the sentence that describes them. */
import { type Arrival, burst, poisson, seededRandom, uniform } from '../../../simulate/index.js'
import { UsageError } from '../../failure.js'
import { formatDuration } from '../../output/format-duration.js'

/** Durations in ticks, rates per second. What is undefined was not asked for. */
export interface TrafficOptions {
  readonly traffic?: 'uniform' | 'poisson' | 'burst'
  readonly rate?: number
  readonly burst?: number
  readonly every?: number
  readonly spread?: number
  readonly startOffset?: number
  readonly duration?: number
  readonly seed: number
}

export interface SyntheticTraffic {
  readonly description: string
  readonly arrivals: Iterable<Arrival>
  /** The end of the simulated time, in ticks; it begins at 0. */
  readonly until: number
}

/** More than anybody waits for. */
const mostArrivals = 200_000_000

export function syntheticTraffic(options: TrafficOptions, capacity: number, windowTicks: number): SyntheticTraffic {
  const until = options.duration ?? 6 * windowTicks
  const { traffic = options.rate === undefined ? 'burst' : 'uniform', ...details } = options
  refuseUnused(traffic, details)
  const shown = (ticks: number): string => formatDuration(ticks / 1000)
  if (traffic === 'burst') {
    const { size, every, spread, from } = burstsOf(details, capacity, windowTicks)
    refuseTooMany((size * until) / every)
    const over = spread > 0 ? ` over ${shown(spread)}` : ' at once'
    const description = `bursts of ${size}${over}, every ${shown(every)} from ${shown(from) === '0' ? '0s' : shown(from)}`
    return { description, until, arrivals: burst({ size, every, spread }, { from, until }) }
  }
  // Half as much again as the limit allows, so that something is refused.
  const rate = details.rate ?? (1.5 * capacity * 1e6) / windowTicks
  const span = { from: details.startOffset ?? 0, until }
  refuseTooMany((rate * until) / 1e6)
  const perSecond = `${Number(rate.toPrecision(4))}/s`
  if (traffic === 'uniform') return { description: `uniform ${perSecond}`, until, arrivals: uniform(rate, span) }
  const arrivals = poisson(rate, span, seededRandom(details.seed))
  return { description: `poisson ${perSecond}, seed ${details.seed}`, until, arrivals }
}

/**
 * When nothing is said about bursts they are the ones worth seeing: each has twice the capacity and lies half before,
 * half after the edge of a window.
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

/** Nothing that was asked for is left out without a word. */
function refuseUnused(traffic: string, { rate, burst, every, spread }: Omit<TrafficOptions, 'traffic'>): void {
  const isGiven = traffic === 'burst' ? rate !== undefined : [burst, every, spread].some((value) => value !== undefined)
  if (!isGiven) return
  throw new UsageError(
    traffic === 'burst'
      ? '--rate is for uniform and poisson traffic; bursts have --burst and --every.'
      : `--burst, --every and --spread are for bursts; ${traffic} traffic has a --rate.`,
  )
}

function refuseTooMany(arrivals: number): void {
  if (arrivals <= mostArrivals) return
  throw new UsageError(
    `That is ${Math.round(arrivals)} requests; at most ${mostArrivals} can be simulated. A shorter --duration or a lower rate shows the same.`,
  )
}
