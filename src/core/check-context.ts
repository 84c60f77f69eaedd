import { FluxGateError } from './errors.js'
import type { RequestContext } from './request-context.js'

/** Throws FLUXGATE_ARGUMENT_INVALID if the context has the wrong type. `null` members are treated as missing. */
export function checkContext(context: RequestContext): RequestContext {
  if (typeof context !== 'object' || context === null) throw invalid('The context', context, 'an object')
  const { path, method, clientIp } = context
  if (typeof path !== 'string' && path != null) throw invalid('path', path, 'a string')
  if (typeof method !== 'string' && method != null) throw invalid('method', method, 'a string')
  if (typeof clientIp !== 'string' && clientIp != null) throw invalid('clientIp', clientIp, 'a string')
  return context
}

/**
 * Rejects a `Headers` object, a `Map` or an array, which have no property per header. Called only where the headers are
 * searched anyway, so that it costs nothing for most contexts.
 */
export function checkHeaders(headers: NonNullable<RequestContext['headers']>): void {
  if (Symbol.iterator in Object(headers))
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      'headers of a check must be a plain object with one property per header; received an iterable. Convert it with Object.fromEntries(headers).',
    )
}

function invalid(name: string, value: unknown, expected: string): FluxGateError {
  const type = value === null ? 'null' : typeof value
  return new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${name} of a check must be ${expected}; received ${type}.`)
}
