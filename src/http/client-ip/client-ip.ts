import { canonicalIp } from '../../core/keys/ip-address.js'
import type { EdgeHeaders } from '../edge-request.js'
import { forwardedElements } from './forwarded-header.js'
import { compileTrustedProxies, type TrustedProxies } from './trusted-proxies.js'

export interface ClientIpOptions {
  /**
   * Proxies whose forwarding header is trusted. Default: none, or the proxy setting of Express and Fastify. Either a list of addresses, networks (`10.0.0.0/8`) and the
   * names `loopback`, `linklocal` and `uniquelocal`, or the number of proxies in front of this process, the nearest included.
   */
  readonly trustedProxies?: TrustedProxies | undefined
  /** The header in which trusted proxies list client addresses. Default `X-Forwarded-For`. `Forwarded` is parsed as RFC 7239. */
  readonly clientIpHeader?: string | undefined
}

export type ClientIpOf = (remoteAddress: string | undefined, headers: EdgeHeaders) => string | undefined

/**
 * Returns the address of the socket, unless it belongs to a trusted proxy. In that case the entries of the header are
 * followed from the right, for as long as the proxies that added them are trusted. Entries further left are never used,
 * because any client can write them.
 */
export function compileClientIp({ trustedProxies, clientIpHeader }: ClientIpOptions): ClientIpOf {
  const isTrusted = compileTrustedProxies(trustedProxies)
  const header = (clientIpHeader ?? 'X-Forwarded-For').toLowerCase()
  const entriesOf = header === 'forwarded' ? forwardedFor : listedFromRight

  return (remoteAddress, headers) => {
    // Sockets report an IPv4 address in one spelling only.
    let ip = remoteAddress?.includes(':') ? addressIn(remoteAddress) : remoteAddress
    if (ip === undefined || isTrusted === undefined || !isTrusted(ip, 0)) return ip
    let distance = 0
    for (const entry of entriesOf(textOf(headers[header]))) {
      const before = addressIn(entry)
      // Unknown, obfuscated or malformed: the nearest known proxy counts as the client.
      if (before === undefined) return ip
      ip = before
      distance += 1
      if (!isTrusted(ip, distance)) return ip
    }
    return ip
  }
}

/** Joins repeated headers into one list. */
const textOf = (value: EdgeHeaders[string]): string => (typeof value === 'string' ? value : (value ?? []).join(','))

const listedFromRight = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .reverse()

/** The `for` parameter of each element. An empty string, which is not an address, if it is missing or the element is malformed. */
function* forwardedFor(text: string): Generator<string> {
  for (const element of forwardedElements(text)) yield element?.get('for') ?? ''
}

/** The canonical form of an address with or without a port; undefined if the text is not an address. */
export const addressIn = (text: string): string | undefined => canonicalIp(text) ?? canonicalIp(withoutPort(text))

/** `1.2.3.4:5678`, `[2001:db8::1]:443`, `[2001:db8::1]`. RFC 7239 allows an obfuscated port such as `_a`. */
function withoutPort(entry: string): string {
  const bracketed = /^\[([^\]]*)\](?::(?:\d{1,5}|_[\w.-]+))?$/.exec(entry)
  if (bracketed) return bracketed[1] ?? ''
  return entry.replace(/^([^:]*):(?:\d{1,5}|_[\w.-]+)$/, '$1')
}
