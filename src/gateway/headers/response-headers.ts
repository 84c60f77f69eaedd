import { changeHeaders } from '../routes/header-change.js'
import type { Route } from '../routes/route.js'
import type { ResponseHead } from '../upstream/response-head.js'
import { connectionOptions, hopByHopHeaders } from './hop-by-hop.js'

/** Headers of the gateway that replace the upstream's headers of the same name, which describe another limit. */
const limitHeaders: ReadonlySet<string> = new Set([
  'ratelimit',
  'ratelimit-policy',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
])

/**
 * The headers of a relayed response, as a flat list: the upstream's without hop-by-hop headers, then the gateway's. A 204 has
 * no `Content-Length` (RFC 9110, 8.6). `responseHead` has rejected responses with more than one.
 */
export function relayedHeaders(head: ResponseHead, route: Route, limits: Readonly<Record<string, string>>): string[] {
  const { headers, names } = head
  const named = connectionOptions(connectionOf(head))
  const list: string[] = []
  let isLimited = false
  for (const _ in limits) {
    isLimited = true
    break
  }
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    if (hopByHopHeaders.has(name) || named?.has(name) || (isLimited && limitHeaders.has(name))) continue
    if (name === 'content-length' && head.status === 204) continue
    list.push(headers[2 * i] as string, headers[2 * i + 1] as string)
  }
  for (const name in limits) list.push(name, limits[name] as string)
  if (route.responseHeaders.length > 0) changeHeaders(list, route.responseHeaders)
  return list
}

/** The values of all `Connection` headers, joined. */
function connectionOf({ headers, names }: ResponseHead): string | undefined {
  let joined: string | undefined
  for (let i = names.indexOf('connection'); i !== -1; i = names.indexOf('connection', i + 1)) {
    const value = headers[2 * i + 1] as string
    joined = joined === undefined ? value : `${joined},${value}`
  }
  return joined
}
