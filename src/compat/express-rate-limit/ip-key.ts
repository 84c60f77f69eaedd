import { canonicalIp, cidrText, parseCidr } from '../../core/keys/ip-address.js'

/** The key of an address: IPv4 as it is, IPv6 as the network of `ipv6Subnet` bits. IPv4-mapped IPv6 is IPv4. */
export function ipKeyGenerator(ip: string, ipv6Subnet: number | false = 56): string {
  // A request whose connection is closed has no address.
  if (typeof ip !== 'string') return ip
  const canonical = canonicalIp(/^::(\d+\.\d+\.\d+\.\d+)$/.exec(ip)?.[1] ?? ip)
  if (canonical === undefined || !canonical.includes(':')) return canonical ?? ip
  if (ipv6Subnet === false) return ip
  const network = parseCidr(`${canonical}/${ipv6Subnet}`)
  return network === undefined ? ip : cidrText(network)
}
