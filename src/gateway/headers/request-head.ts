import type { IncomingMessage } from 'node:http'
import type { GatewayParts } from '../proxy/gateway-parts.js'
import type { RequestTarget } from '../proxy/request-target.js'
import { changeHeaders } from '../routes/header-change.js'
import type { Route } from '../routes/route.js'
import { forwardedPath } from './forwarded-path.js'
import { connectionOptions, strippedRequestHeaders } from './hop-by-hop.js'
import type { TraceContext } from './trace-context.js'

/**
 * The headers of the upstream request, as a flat list. The HTTP client adds those that manage the connection. The headers of an
 * active trace replace those of the client.
 */
export function upstreamHeaders(
  { forwarding, isUntrustedHeader }: Pick<GatewayParts, 'forwarding' | 'isUntrustedHeader'>,
  request: IncomingMessage,
  route: Route,
  target: RequestTarget,
  trace?: TraceContext,
): string[] {
  const { rawHeaders, headers } = request
  const named = connectionOptions(headers.connection)
  const peer = forwarding.peerOf(request.socket)
  const traced = trace?.headers
  const list = ['Host', route.preservesHost ? target.host : route.origin.authority]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    const lower = name.toLowerCase()
    if (strippedRequestHeaders.has(lower) || named?.has(lower) || (!peer.isTrusted && isUntrustedHeader(lower)))
      continue
    if (traced !== undefined && trace?.fields.includes(lower)) continue
    list.push(name, rawHeaders[i + 1] as string)
  }
  if (traced !== undefined) for (const name in traced) list.push(name, traced[name] as string)
  forwarding.addTo(list, peer, request, target.host)
  if (route.requestHeaders.length > 0) changeHeaders(list, route.requestHeaders)
  const length = headers['content-length']
  if (headers['transfer-encoding'] === undefined && length !== undefined) list.push('Content-Length', length)
  if (headers.te !== undefined && /(?:^|,)\s*trailers\b/i.test(String(headers.te))) list.push('TE', 'trailers')
  return list
}

/** The path and query of the upstream request. */
export function upstreamPath({ pathChanges }: Route, { path, query }: RequestTarget): string {
  let sent = path
  for (const change of pathChanges) sent = change(sent)
  // A rewritten path may contain dot segments or repeated slashes.
  if (pathChanges.length > 0) sent = forwardedPath(sent)
  return query === '' ? sent : `${sent}?${query}`
}
