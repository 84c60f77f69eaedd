/** Requests and responses as `fetch` knows them, wherever it runs. */
import { addressIn } from '../../http/client-ip/client-ip.js'
import type { EdgeRequest } from '../../http/edge-request.js'
import type { Outcome } from '../../http/guard.js'
import { stackedHeaders } from '../../http/headers/stacked-headers.js'

export const fetchEdgeOf = (request: Request, remoteAddress: string | undefined): EdgeRequest => ({
  method: request.method,
  url: request.url,
  headers: Object.fromEntries(request.headers),
  remoteAddress: remoteAddress === undefined ? undefined : addressIn(remoteAddress),
  signal: () => request.signal,
  isGone: () => request.signal.aborted,
})

/** Nobody reads the answer to a client that has left; some status it must have. */
const clientClosedRequest = 499

/** The answer to a request that may not pass. */
export function rejectionResponse(outcome: Exclude<Outcome, { kind: 'PASS' }>, method: string): Response {
  if (outcome.kind === 'GONE') return new Response(null, { status: clientClosedRequest })
  const { status, headers, body } = outcome
  return new Response(method === 'HEAD' ? null : body, { status, headers })
}

/** The response of the application with these headers on it; another object, if that one cannot be changed. */
export function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  // `Response.error()` and switched protocols have a status that a copy cannot have.
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

function setHeaders({ status, headers }: Response, more: Readonly<Record<string, string>>): void {
  // Here the outer limit speaks last, so that an inner one may have refused already.
  const isRefused = status === 429 || status === 503
  const said = { getHeader: (name: string) => headers.get(name) ?? undefined }
  const together = stackedHeaders(more, said, false)
  for (const name in together) {
    if (isRefused && name !== 'RateLimit-Policy' && headers.has(name)) continue
    headers.set(name, together[name] as string)
  }
}
