/** Messages for validation issues in settings. */
import { wrongValue } from '../validation/fields.js'
import { nearest } from '../validation/nearest.js'

export function unknownName(name: string, names: readonly string[]): string {
  const suggestion = nearest(name, names)
  return `unknown key; ${suggestion === undefined ? `allowed: ${names.join(', ')}` : `did you mean ${suggestion}?`}`
}

/** Includes the received value, unless it may contain a password. */
export const problem = (received: unknown, allowed: string, isSecret = false): string =>
  isSecret || (typeof received === 'string' && received.includes('://'))
    ? `must be ${allowed}; the received value is hidden`
    : wrongValue(received, allowed)
