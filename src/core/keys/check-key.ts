import { FluxGateError } from '../errors.js'

/** Whom to count, as a caller names it. */
export function checkKey(key: string): string {
  if (typeof key === 'string' && key.length > 0) return key
  throw keyInvalid(key)
}

/** Apart, so that checking is short. */
const keyInvalid = (key: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `key must be a string that is not empty, found ${key === '' ? 'an empty one' : typeof key}.`,
  )
