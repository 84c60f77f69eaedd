/** How long simulated requests take. */
import { seededRandom } from '../../../core/seeded-random.js'
import { type Arrival, type Arrivals, type ServiceTime, serviceTimes } from '../../../simulate/index.js'
import { UsageError } from '../../failure.js'
import { formatDuration } from '../../output/format-duration.js'
import type { TrafficOptions } from './traffic.js'

type ServiceOptions = Pick<TrafficOptions, 'serviceTime' | 'serviceDistribution' | 'seed'>

/** Undefined if the options give no service time. */
export function serviceTimeOf({
  serviceTime,
  serviceDistribution = 'fixed',
  seed,
}: ServiceOptions): ServiceTime | undefined {
  if (serviceTime === undefined) return undefined
  // A different seed than that of the arrivals makes service times independent of them.
  return serviceTimes(serviceDistribution, serviceTime, seededRandom(~seed >>> 0))
}

/** The service time for the description of synthetic traffic. */
export function serviceText({ serviceTime, serviceDistribution = 'fixed' }: Omit<ServiceOptions, 'seed'>): string {
  if (serviceTime === undefined) return ''
  const distribution = serviceDistribution === 'fixed' ? '' : `, ${serviceDistribution}`
  return ` · ${formatDuration(serviceTime / 1_000)} each${distribution}`
}

/** `limits` names what counts requests in progress. */
export const needServiceTime = (limits: string): UsageError =>
  new UsageError(
    `${limits} limits requests in progress, and the traffic has no durations. Pass --service-time, or --duration-field for a recording.`,
  )

/** Fails at the first arrival of a recording without durations, instead of simulating requests that take no time. */
export async function* withDurations(arrivals: Arrivals, limits: string): AsyncGenerator<Arrival> {
  let isFirst = true
  for await (const arrival of arrivals) {
    if (isFirst && arrival.duration === undefined) throw needServiceTime(limits)
    isFirst = false
    yield arrival
  }
}
