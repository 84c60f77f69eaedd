import { createHash } from 'node:crypto'
import { checkHeaders } from '../../core/decision/check-request.js'
import { FluxGateError, messageOf } from '../../core/errors.js'
import type { CheckOptions } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'

/**
 * The most that a server takes. Whoever is to be limited chooses much of a request, and must not be able to make it one that
 * the server does not take: then nobody would have decided about it.
 */
const most = { clientIp: 256, identity: 1_024, method: 64, path: 8_192, header: 8_192, headers: 100 }

/** Headers that are nobody's business but the application's; they are sent only if they are named. */
const secret = new Set(['authorization', 'cookie', 'proxy-authorization'])

/** One check as the server reads it. `headers`: which of the request's it is told; left out, all that are no secret. */
export function checkText(context: RequestContext, options: CheckOptions, headers?: ReadonlySet<string>): string {
  const check = {
    ruleSetId: options.ruleSetId,
    clientIp: context.clientIp?.slice(0, most.clientIp),
    userId: identity(context.userId),
    apiKey: identity(context.apiKey),
    method: context.method?.slice(0, most.method),
    path: context.path?.slice(0, most.path),
    headers: context.headers && told(context.headers, headers),
    attributes: context.attributes,
    permits: options.permits,
    peek: options.peek === true ? true : undefined,
  }
  try {
    return JSON.stringify(check)
  } catch (cause) {
    const message = `The context of a check cannot be sent, because it is not JSON: ${messageOf(cause)}`
    throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message, { cause })
  }
}

/** Another name for a long one, and the same for the same. */
function identity(value: string | undefined): string | undefined {
  if (value == null || value.length <= most.identity) return value
  return `sha256:${createHash('sha256').update(value).digest('hex')}`
}

function told(
  all: NonNullable<RequestContext['headers']>,
  wanted: ReadonlySet<string> | undefined,
): Record<string, string | readonly string[]> {
  checkHeaders(all)
  const kept: Record<string, string | readonly string[]> = {}
  let count = 0
  for (const name in all) {
    // Those of a middleware are in lower case, those written by hand may not be.
    const lower = name.toLowerCase()
    if (wanted === undefined ? secret.has(lower) : !wanted.has(lower)) continue
    const value = all[name]
    if (value == null || !isShort(value)) continue
    kept[name] = value
    count += 1
    if (count === most.headers) break
  }
  return kept
}

const isShort = (value: string | readonly string[]): boolean =>
  typeof value === 'string'
    ? value.length <= most.header
    : value.length <= most.headers && value.every((item) => item.length <= most.header)
