import { FluxGateError } from './errors.js'

/** Returns the key, or throws FLUXGATE_ARGUMENT_INVALID if it is not a non-empty string. */
export function checkKey(key: string): string {
  if (typeof key === 'string' && key.length > 0) return key
  throw keyInvalid(key)
}

/** A separate function keeps `checkKey` small on the hot path. */
const keyInvalid = (key: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `key must be a non-empty string; received ${key === '' ? 'an empty string' : typeof key}.`,
  )
