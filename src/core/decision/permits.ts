import { FluxGateError } from '../errors.js'
import { maxCapacity } from '../rule.js'

/** What one call may ask for: a whole number, since a fraction of a permit means nothing. */
export function checkPermits(permits: number): number {
  if (Number.isInteger(permits) && permits >= 1 && permits <= maxCapacity) return permits
  throw invalid(permits)
}

function invalid(permits: unknown): FluxGateError {
  return new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `permits must be a whole number from 1 to ${maxCapacity}, found ${typeof permits === 'number' ? permits : typeof permits}.`,
  )
}
