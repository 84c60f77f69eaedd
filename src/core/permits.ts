import { FluxGateError } from './errors.js'
import { maxCapacity } from './rule.js'

/** Returns the number of permits, or throws FLUXGATE_ARGUMENT_INVALID if it is not an integer in the legal range. */
export function checkPermits(permits: number): number {
  if (Number.isInteger(permits) && permits >= 1 && permits <= maxCapacity) return permits
  throw invalid(permits)
}

function invalid(permits: unknown): FluxGateError {
  return new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `permits must be an integer from 1 to ${maxCapacity}; received ${typeof permits === 'number' ? permits : typeof permits}.`,
  )
}
