import { FluxGateError } from './errors.js'
import { maxWindowTicks } from './rule.js'

/** No wait is longer than the longest window. */
export const longestWaitMs = maxWindowTicks / 1000

/** A number that a caller gave in code, if it is one that can be used. */
export function checkRange(name: string, value: number, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof value === 'number' && value >= least && value <= most) return value
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `${name} must be a number from ${least} to ${most}, found ${String(value)}.`,
  )
}
