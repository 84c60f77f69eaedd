import { FluxGateError } from '../core/errors.js'
import { type Cidr, canonicalIp, inCidr, mayBeIpv6, parseCidr } from '../core/ip-address.js'
import type { EdgeHeaders } from './edge-request.js'

export interface ClientIpOptions {
  /** Addresses and networks (`10.0.0.0/8`) of proxies whose word counts; default none. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Where such a proxy says for whom it asks; default `X-Forwarded-For`. `Forwarded` is understood too. */
  readonly clientIpHeader?: string | undefined
}

export type ClientIpOf = (remoteAddress: string | undefined, headers: EdgeHeaders) => string | undefined

/**
 * Who asks: the socket's address, unless that is a trusted proxy's. Then the entries of its header are believed from the
 * right, for as long as those who added them are trusted; what is left of the first stranger anybody could have written.
 */
export function compileClientIp({ trustedProxies = [], clientIpHeader }: ClientIpOptions): ClientIpOf {
  const trusted = trustedProxies.map(networkOf)
  const header = (clientIpHeader ?? 'X-Forwarded-For').toLowerCase()
  const entriesOf = header === 'forwarded' ? forwardedFor : listed
  const isTrusted = (ip: string): boolean => trusted.some((network) => inCidr(ip, network))

  return (remoteAddress, headers) => {
    // A socket has one spelling for an IPv4 address.
    let ip = remoteAddress !== undefined && mayBeIpv6(remoteAddress) ? addressIn(remoteAddress) : remoteAddress
    if (ip === undefined || trusted.length === 0) return ip
    const entries = entriesOf(textOf(headers[header]))
    while (isTrusted(ip)) {
      const entry = entries.pop()
      const before = entry === undefined ? undefined : addressIn(entry)
      // Nothing more is said, or nothing that is an address: the proxy itself is all that is known.
      if (before === undefined) return ip
      ip = before
    }
    return ip
  }
}

function networkOf(text: string): Cidr {
  const network = parseCidr(text)
  if (network !== undefined) return network
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    `trustedProxies: found ${JSON.stringify(text)}; allowed: an address such as 10.0.0.1, or a network such as 10.0.0.0/8.`,
  )
}

/** A header that was sent several times is one list. */
const textOf = (value: EdgeHeaders[string]): string => (typeof value === 'string' ? value : (value ?? []).join(','))

const listed = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')

/** The `for` of each element of RFC 7239; an element without one is somebody unknown. */
const forwardedFor = (text: string): string[] =>
  listed(text).map((element) => /(?:^|;)\s*for\s*=\s*"?([^";]*)"?/i.exec(element)?.[1]?.trim() ?? '')

/** The one spelling of an address, which may come with a port. Undefined if it is none. */
export const addressIn = (text: string): string | undefined => canonicalIp(text) ?? canonicalIp(withoutPort(text))

/** `1.2.3.4:5678`, `[2001:db8::1]:443`, `[2001:db8::1]` */
function withoutPort(entry: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(entry)
  if (bracketed) return bracketed[1] ?? ''
  return entry.replace(/^([^:]*):\d+$/, '$1')
}
