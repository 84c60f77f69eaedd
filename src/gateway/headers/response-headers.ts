import { changeHeaders } from '../routes/header-change.js'
import type { Route } from '../routes/route.js'
import type { ResponseHead } from '../upstream/response-head.js'
import { namedByConnection, notFromUpstreams } from './hop-by-hop.js'

/** What the gateway says about limits counts; an upstream that says something under the same name means another limit. */
const limitHeaders: ReadonlySet<string> = new Set([
  'ratelimit',
  'ratelimit-policy',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
])

/**
 * The headers of a relayed response, flat: the upstream's without hop-by-hop headers, then the gateway's. A 204 has no length
 * (RFC 9110, 8.6); that there is one length at most was checked before.
 */
export function relayedHeaders(head: ResponseHead, route: Route, limits: Readonly<Record<string, string>>): string[] {
  const { headers, names } = head
  const named = namedByConnection(connectionOf(head))
  const list: string[] = []
  let isLimited = false
  for (const _ in limits) {
    isLimited = true
    break
  }
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    if (notFromUpstreams.has(name) || named?.has(name) || (isLimited && limitHeaders.has(name))) continue
    if (name === 'content-length' && head.status === 204) continue
    list.push(headers[2 * i] as string, headers[2 * i + 1] as string)
  }
  for (const name in limits) list.push(name, limits[name] as string)
  if (route.responseHeaders.length > 0) changeHeaders(list, route.responseHeaders)
  return list
}

/** All values of `Connection` as one. */
function connectionOf({ headers, names }: ResponseHead): string | undefined {
  let joined: string | undefined
  for (let i = names.indexOf('connection'); i !== -1; i = names.indexOf('connection', i + 1)) {
    const value = headers[2 * i + 1] as string
    joined = joined === undefined ? value : `${joined},${value}`
  }
  return joined
}
