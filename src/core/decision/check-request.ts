/** Validates the arguments of a decision. */
import { describeValue, FluxGateError } from '../errors.js'
import type { RequestContext } from '../request-context.js'
import { maxCapacity } from '../rule.js'

/** Null members count as absent. */
export function checkContext(context: RequestContext): RequestContext {
  if (typeof context !== 'object' || context === null) throw contextInvalid('The context', context, 'an object')
  const { path, method, clientIp, key } = context
  if (typeof path !== 'string' && path != null) throw contextInvalid('path', path, 'a string')
  if (typeof method !== 'string' && method != null) throw contextInvalid('method', method, 'a string')
  if (typeof clientIp !== 'string' && clientIp != null) throw contextInvalid('clientIp', clientIp, 'a string')
  if (typeof key !== 'string' && key != null) throw contextInvalid('key', key, 'a string')
  return context
}

/**
 * Rejects a `Headers`, a `Map` or a list, which have no property named after a header. Called where headers are searched
 * anyway, not for every context.
 */
export function checkHeaders(headers: NonNullable<RequestContext['headers']>): void {
  if (Symbol.iterator in Object(headers))
    throw invalid(
      'headers of a check must be a plain object with one property per header; received an iterable. Convert it with Object.fromEntries(headers).',
    )
}

/** 0 permits read the current state. */
export function checkPermits(permits: number): number {
  if (Number.isInteger(permits) && permits >= 0 && permits <= maxCapacity) return permits
  throw invalid(`permits must be an integer from 0 to ${maxCapacity}; received ${describeValue(permits)}.`)
}

export function checkKey(key: string): string {
  if (typeof key === 'string' && key.length > 0) return key
  throw keyInvalid(key)
}

export const keyInvalid = (key: unknown): FluxGateError =>
  invalid(`key must be a non-empty string; received ${key === '' ? 'an empty string' : describeValue(key)}.`)

function contextInvalid(what: string, value: unknown, allowed: string): FluxGateError {
  return invalid(`${what} of a check must be ${allowed}; received ${describeValue(value)}.`)
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
