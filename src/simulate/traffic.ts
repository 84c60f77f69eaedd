/**
 * Synthetic traffic on a virtual clock. Each generator yields arrivals in [from, until), all times in ticks, and
 * nothing but its arguments decides what it yields.
 */
import type { Arrival } from './arrival.js'
import type { Random } from './random.js'

export interface Span {
  readonly from: number
  readonly until: number
}

const ticksPerSecond = 1_000_000

/** `rate` requests a second, evenly spaced, the first at once. */
export function* uniform(rate: number, { from, until }: Span): Generator<Arrival> {
  // From the count, not from the arrival before: rounding to ticks must not add up.
  for (let i = 0; ; i++) {
    const at = from + Math.floor((i * ticksPerSecond) / rate)
    if (at >= until) return
    yield { at }
  }
}

/** `rate` requests a second on average, each independent of the others: what many unrelated callers look like. */
export function* poisson(rate: number, { from, until }: Span, random: Random): Generator<Arrival> {
  let exactAt = from
  for (;;) {
    exactAt += (-Math.log(1 - random()) * ticksPerSecond) / rate
    const at = Math.floor(exactAt)
    if (at >= until) return
    yield { at }
  }
}

export interface Bursts {
  readonly size: number
  /** From the start of one burst to the start of the next. */
  readonly every: number
  /** How long a burst takes; 0 when all of it comes in one instant. */
  readonly spread: number
}

/** The first burst begins at `from`. */
export function* burst({ size, every, spread }: Bursts, { from, until }: Span): Generator<Arrival> {
  for (let start = from; start < until; start += every) {
    for (let i = 0; i < size; i++) {
      const at = start + Math.floor((i * spread) / size)
      if (at >= until) return
      yield { at }
    }
  }
}
