import type { Random } from '../core/seeded-random.js'

/** How the durations of requests are distributed around their mean. */
export const distributions = ['fixed', 'uniform', 'exponential', 'lognormal'] as const
export type Distribution = (typeof distributions)[number]

/** Returns the duration of the next request, in whole ticks. */
export type ServiceTime = () => number

/** The standard deviation of the logarithm: one request in a hundred takes more than six times the mean. */
const sigma = 1

/**
 * Durations with the given mean, in ticks: always the mean; between 0 and twice the mean; exponential, as in queueing models; or
 * log-normal, most of them short and a few very long.
 */
export function serviceTimes(distribution: Distribution, mean: number, random: Random): ServiceTime {
  const draw = {
    fixed: () => mean,
    uniform: () => 2 * mean * random(),
    exponential: () => -Math.log(1 - random()) * mean,
    lognormal: () => mean * Math.exp(sigma * normal(random) - sigma ** 2 / 2),
  }[distribution]
  return () => Math.max(1, Math.round(draw()))
}

/** A standard normal variate, by the method of Box and Muller. */
const normal = (random: Random): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
