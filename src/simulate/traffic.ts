/** Synthetic traffic. Each generator yields arrivals in [from, until), and its output depends only on its arguments. */

import type { Random } from '../core/seeded-random.js'
import type { Arrival } from './arrival.js'

/** An interval in ticks. */
export interface Span {
  readonly from: number
  readonly until: number
}

const ticksPerSecond = 1_000_000

/** `rate` evenly spaced requests per second, the first one at `from`. */
export function* uniform(rate: number, { from, until }: Span): Generator<Arrival> {
  // Computed from the index and not from the previous arrival, so that rounding errors do not add up.
  for (let i = 0; ; i++) {
    const at = from + Math.floor((i * ticksPerSecond) / rate)
    if (at >= until) return
    yield { at }
  }
}

/** `rate` independent requests per second on average, like the traffic of many unrelated clients. */
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
  /** Ticks from the start of one burst to the start of the next. */
  readonly every: number
  /** The duration of a burst in ticks. 0 if all its requests arrive at the same time. */
  readonly spread: number
}

/** Bursts of requests, the first one at `from`. */
export function* burst({ size, every, spread }: Bursts, { from, until }: Span): Generator<Arrival> {
  for (let start = from; start < until; start += every) {
    for (let i = 0; i < size; i++) {
      const at = start + Math.floor((i * spread) / size)
      if (at >= until) return
      yield { at }
    }
  }
}
