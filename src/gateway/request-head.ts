import type { IncomingMessage } from 'node:http'
import { forwardedPath } from './forwarded-path.js'
import type { GatewayParts } from './gateway-parts.js'
import { changeHeaders } from './header-change.js'
import { namedByConnection, notFromClients } from './hop-by-hop.js'
import type { Target } from './objection.js'
import type { Route } from './route.js'

/** What is written to the upstream before the body. */
export function requestHead(
  { forwarding, isUntrustedHeader }: Pick<GatewayParts, 'forwarding' | 'isUntrustedHeader'>,
  request: IncomingMessage,
  route: Route,
  target: Target,
  isUpgrade: boolean,
): string {
  const { rawHeaders, headers } = request
  const named = namedByConnection(headers.connection)
  const isTrusted = forwarding.isTrusted(request)
  const list = ['Host', route.preservesHost ? target.host : route.origin.authority]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    const lower = name.toLowerCase()
    if (notFromClients.has(lower) || named?.has(lower) || (!isTrusted && isUntrustedHeader(lower))) continue
    list.push(name, rawHeaders[i + 1] as string)
  }
  forwarding.addTo(list, request, target.host)
  if (route.requestHeaders.length > 0) changeHeaders(list, route.requestHeaders)
  addFraming(list, request, isUpgrade)
  let head = `${request.method} ${sentTarget(route, target)} HTTP/1.1\r\n`
  for (let i = 0; i < list.length; i += 2) head += `${list[i]}: ${list[i + 1]}\r\n`
  return `${head}\r\n`
}

/** Path and query as the upstream gets them. */
function sentTarget({ pathChanges }: Route, { path, query }: Target): string {
  let sent = path
  for (const change of pathChanges) sent = change(sent)
  // A rewritten path may have dot segments or repeated slashes again.
  if (pathChanges.length > 0) sent = forwardedPath(sent)
  return query === '' ? sent : `${sent}?${query}`
}

function addFraming(list: string[], { headers }: IncomingMessage, isUpgrade: boolean): void {
  const length = headers['content-length']
  if (headers['transfer-encoding'] !== undefined) list.push('Transfer-Encoding', 'chunked')
  else if (length !== undefined) list.push('Content-Length', length)
  if (headers.expect !== undefined) list.push('Expect', '100-continue')
  const options: string[] = []
  if (/(?:^|,)\s*trailers\b/i.test(String(headers.te ?? ''))) {
    list.push('TE', 'trailers')
    options.push('TE')
  }
  if (isUpgrade) {
    list.push('Upgrade', 'websocket')
    options.push('Upgrade')
  }
  if (options.length > 0) list.push('Connection', options.join(', '))
}

/** Trailers that may follow a body, as they are written. */
export function trailerText(rawTrailers: readonly string[], refused: ReadonlySet<string>): string {
  let text = ''
  for (let i = 0; i < rawTrailers.length; i += 2)
    if (!refused.has((rawTrailers[i] as string).toLowerCase())) text += `${rawTrailers[i]}: ${rawTrailers[i + 1]}\r\n`
  return text
}
