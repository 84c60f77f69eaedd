/** How mistakes in settings are told. */
import { wrongValue } from '../validation/fields.js'
import { nearest } from '../validation/nearest.js'

export function unknownName(name: string, names: readonly string[]): string {
  const meant = nearest(name, names)
  return `unknown key; ${meant === undefined ? `allowed: ${names.join(', ')}` : `did you mean ${meant}?`}`
}

/** What was found is shown, unless it may hold a password. */
export const problem = (found: unknown, allowed: string, isSecret = false): string =>
  isSecret || (typeof found === 'string' && found.includes('://'))
    ? `not understood; allowed: ${allowed}`
    : wrongValue(found, allowed)
