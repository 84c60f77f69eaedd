/** Requests and responses of the Fetch API. */

import { anonymous } from '../../core/decision/snapshot.js'
import type { Decision } from '../../core/decision.js'
import { addressIn } from '../../http/client-ip/client-ip.js'
import type { EdgeRequest } from '../../http/edge-request.js'
import type { Outcome } from '../../http/guard.js'
import { mergeHeaders } from '../../http/rate-limit-headers.js'
import type { Warnings } from '../../validation/warnings.js'

export const fetchEdge = (request: Request, remoteAddress: string | undefined): EdgeRequest => ({
  method: request.method,
  url: request.url,
  headers: Object.fromEntries(request.headers),
  remoteAddress: remoteAddress === undefined ? undefined : addressIn(remoteAddress),
  signal: () => request.signal,
  isAborted: () => request.signal.aborted,
})

/**
 * Warns if a request was counted without a key because its client address is unknown. `hint` describes how to pass the address.
 */
export function warnOfMissingAddress(
  outcome: Outcome,
  address: string | undefined,
  warnings: Warnings,
  hint: string,
): void {
  if (address !== undefined || outcome.kind === 'ABORTED' || !isKeyMissing(outcome.decision)) return
  const message = `Requests have no client address, so clients without a key share one limit. ${hint}`
  warnings.warn('FLUXGATE_IDENTITY_UNCONFIGURED', message)
}

const isKeyMissing = (decision: Decision | undefined): boolean =>
  decision?.reason === 'MISSING_KEY' || decision?.bands.some(({ key }) => key === anonymous) === true

/** The status of nginx for a client that has disconnected. It is never sent. */
const clientClosedRequest = 499

/** The response to a request that is not allowed. */
export function rejectionResponse(outcome: Exclude<Outcome, { kind: 'ALLOWED' }>, method: string): Response {
  if (outcome.kind === 'ABORTED') return new Response(null, { status: clientClosedRequest })
  const { status, headers, body } = outcome
  return new Response(method === 'HEAD' ? null : body, { status, headers })
}

/** Sets headers on a response of the application. Returns a copy if the response is immutable. */
export function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  // A copy cannot have the status of `Response.error()` or of an upgrade.
  if (response.status < 200) return response
  try {
    setHeaders(response, headers)
    return response
  } catch {
    const copy = new Response(response.body, response)
    setHeaders(copy, headers)
    return copy
  }
}

/** Calls `release` once the body of the response has been read, has failed, or was cancelled because the client left. */
export function releaseAfter(response: Response, release: () => void): Response {
  const { body } = response
  if (body === null || response.status < 200) {
    release()
    return response
  }
  const reader = body.getReader()
  const stream = new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) {
          controller.enqueue(value)
          return
        }
        release()
        controller.close()
        controller.byobRequest?.respond(0)
      } catch (error) {
        release()
        controller.error(error)
      }
    },
    cancel(reason) {
      release()
      return reader.cancel(reason)
    },
  })
  return new Response(stream, response)
}

function setHeaders({ status, headers }: Response, added: Readonly<Record<string, string>>): void {
  // Outer limits set their headers last, so an inner limit may already have rejected the request.
  const isRejected = status === 429 || status === 503
  const merged = mergeHeaders(added, { getHeader: (name) => headers.get(name) ?? undefined }, false)
  for (const name in merged) {
    if (isRejected && name !== 'RateLimit-Policy' && headers.has(name)) continue
    headers.set(name, merged[name] as string)
  }
}
