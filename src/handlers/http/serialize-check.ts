import { createHash } from 'node:crypto'
import { checkHeaders } from '../../core/decision/check-request.js'
import { FluxGateError, messageOf } from '../../core/errors.js'
import type { CheckOptions } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'

/**
 * The maximum lengths that a server accepts. Longer values are shortened here: otherwise a client could avoid its limit by
 * sending a request that the server rejects as invalid.
 */
const max = { clientIp: 256, identity: 1_024, method: 64, path: 8_192, header: 8_192, headers: 100 }

/** Headers with credentials. They are sent only if the option `headers` names them. */
const secret = new Set(['authorization', 'cookie', 'proxy-authorization'])

/**
 * The JSON of one check. `headers` are the names of the headers to send; default all without credentials. `traceparent` is that of
 * the active span, because the checks of several traces share a call.
 */
export function serializeCheck(
  context: RequestContext,
  options: CheckOptions,
  headers?: ReadonlySet<string>,
  traceparent?: string,
): string {
  const selected = context.headers && selectHeaders(context.headers, headers)
  const check = {
    ruleSetId: options.ruleSetId,
    key: identity(context.key),
    clientIp: context.clientIp?.slice(0, max.clientIp),
    userId: identity(context.userId),
    apiKey: identity(context.apiKey),
    method: context.method?.slice(0, max.method),
    path: context.path?.slice(0, max.path),
    headers: traceparent === undefined ? selected : { ...selected, traceparent },
    attributes: context.attributes,
    permits: options.permits,
    costs: options.costs,
    peek: options.peek === true ? true : undefined,
  }
  try {
    return JSON.stringify(check)
  } catch (cause) {
    const message = `The context of a check must be serializable as JSON: ${messageOf(cause)}`
    throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message, { cause })
  }
}

/** Replaces a long identity with its hash. */
function identity(value: string | undefined): string | undefined {
  if (value == null || value.length <= max.identity) return value
  return `sha256:${createHash('sha256').update(value).digest('hex')}`
}

function selectHeaders(
  all: NonNullable<RequestContext['headers']>,
  wanted: ReadonlySet<string> | undefined,
): Record<string, string | readonly string[]> {
  checkHeaders(all)
  const kept: Record<string, string | readonly string[]> = {}
  let count = 0
  for (const name in all) {
    // Names from a middleware are in lower case; names in a context built by hand may not be.
    const lower = name.toLowerCase()
    if (wanted === undefined ? secret.has(lower) : !wanted.has(lower)) continue
    const value = all[name]
    if (value == null || !isShort(value)) continue
    kept[name] = value
    count += 1
    if (count === max.headers) break
  }
  return kept
}

const isShort = (value: string | readonly string[]): boolean =>
  typeof value === 'string'
    ? value.length <= max.header
    : value.length <= max.headers && value.every((item) => item.length <= max.header)
