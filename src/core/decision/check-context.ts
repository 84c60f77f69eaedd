import { FluxGateError } from '../errors.js'
import type { RequestContext } from '../request-context.js'

/** Refuses what cannot be a request, so that nothing inside has to expect it. What is null counts as left out. */
export function checkContext(context: RequestContext): RequestContext {
  if (typeof context !== 'object' || context === null) throw invalid('The context', context, 'an object')
  const { path, method, clientIp } = context
  if (typeof path !== 'string' && path != null) throw invalid('path', path, 'a string')
  if (typeof method !== 'string' && method != null) throw invalid('method', method, 'a string')
  if (typeof clientIp !== 'string' && clientIp != null) throw invalid('clientIp', clientIp, 'a string')
  return context
}

/**
 * Refuses a `Headers`, a `Map` or a list, which hold no header under its name. Asked where headers are looked through
 * anyway, and not of every context.
 */
export function checkHeaders(headers: NonNullable<RequestContext['headers']>): void {
  if (Symbol.iterator in Object(headers))
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      'headers of a check must be an object with the headers by name; Object.fromEntries(headers) makes one of what is iterable.',
    )
}

function invalid(what: string, found: unknown, allowed: string): FluxGateError {
  const kind = found === null ? 'null' : typeof found
  return new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${what} of a check must be ${allowed}, found ${kind}.`)
}
