import { FluxGateError } from '../../core/errors.js'
import { type Cidr, inCidr, parseCidr } from '../../core/keys/ip-address.js'

/** A number of hops, or addresses, networks and names of networks, as a list or a comma-separated string. */
export type TrustedProxies = number | string | readonly string[]

/** True if the peer at this distance is a trusted proxy. Distance 0 is the other end of the socket. */
export type IsTrustedProxy = (ip: string, distance: number) => boolean

/** The named networks of Express. */
const namedNetworks: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

export const trustedProxyForms =
  'a number of hops from 0 to 100; or addresses such as 10.0.0.1, networks such as 10.0.0.0/8, and loopback, linklocal, uniquelocal'

const maxHops = 100

/** Returns undefined if no proxy is trusted. Throws `FLUXGATE_CONFIG_INVALID` for an invalid value. */
export function compileTrustedProxies(value: TrustedProxies = []): IsTrustedProxy | undefined {
  const parsed = parseTrustedProxies(value)
  if (parsed === undefined)
    throw new FluxGateError(
      'FLUXGATE_CONFIG_INVALID',
      `trustedProxies: found ${JSON.stringify(value)}; allowed: ${trustedProxyForms}.`,
    )
  if (typeof parsed === 'number') return parsed === 0 ? undefined : (_, distance) => distance < parsed
  const networks = parsed.flatMap((text) => networksOf(text) ?? [])
  return networks.length === 0 ? undefined : (ip) => networks.some((network) => inCidr(ip, network))
}

/** The number of hops, or the list of addresses, networks and names; undefined if it is neither. */
export function parseTrustedProxies(value: unknown): number | readonly string[] | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && value >= 0 && value <= maxHops ? value : undefined
  // Environment variables are strings.
  if (typeof value === 'string' && /^\d{1,3}$/.test(value.trim())) return parseTrustedProxies(Number(value))
  const items: unknown = typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value
  if (!Array.isArray(items) || items.length > 10_000) return undefined
  return items.every((item) => typeof item === 'string' && networksOf(item) !== undefined) ? items : undefined
}

function networksOf(text: string): readonly Cidr[] | undefined {
  if (Object.hasOwn(namedNetworks, text)) return namedNetworks[text]?.map((network) => parseCidr(network) as Cidr)
  const network = parseCidr(text)
  return network && [network]
}
