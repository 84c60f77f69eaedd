import { FluxGateError } from './errors.js'
import { maxWindowTicks } from './rule.js'

/** The upper bound of all configurable waits: the longest legal window. */
export const longestWaitMs = maxWindowTicks / 1000

/** Returns the value of an option, or throws FLUXGATE_ARGUMENT_INVALID if it is not a number from `min` to `max`. */
export function checkRange(name: string, value: number, min: number, max = Number.MAX_SAFE_INTEGER): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `${name} must be a number from ${min} to ${max}; received ${String(value)}.`,
  )
}
