import type { IncomingMessage } from 'node:http'
import { type Cidr, inCidr, parseCidr } from '../../core/keys/ip-address.js'
import { ApiProblem } from './api-problem.js'
import { isAmbient } from './tokens.js'

const ipv4 = parseCidr('127.0.0.0/8') as Cidr
const ipv6 = parseCidr('::1') as Cidr

/** True if a host name or address always refers to this machine. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  const address = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name
  return address === 'localhost' || address.endsWith('.localhost') || inCidr(address, ipv4) || inCidr(address, ipv6)
}

/** A header for a message, shortened. */
const shown = (value: string): string => JSON.stringify(value.slice(0, 100))

const hostOf = (authority: string): string => authority.replace(/:\d*$/, '')

/**
 * Without an admin token, every local process is an administrator, including web pages in a local browser. This check stops
 * DNS rebinding: a page whose host name resolves to loopback still sends its own name in `Host`. `assertOwnOrigin` stops pages
 * of other sites.
 */
export function assertOwnHost({ headers: { host = '' } }: IncomingMessage): void {
  if (isLoopback(hostOf(host))) return
  throw new ApiProblem(
    'FLUXGATE_ORIGIN_FORBIDDEN',
    `Without an admin token, the Host header must be a loopback name such as localhost or 127.0.0.1; received ${shown(host)}. Set server.adminToken to use other names.`,
  )
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Rejects changes from pages of other sites, for which the browser may have attached credentials by itself. */
export function assertOwnOrigin(request: IncomingMessage): void {
  const { origin, host } = request.headers
  if (origin === undefined || safeMethods.has(request.method ?? '') || !isAmbient(request)) return
  if (origin.replace(/^https?:\/\//, '') === host) return
  throw new ApiProblem(
    'FLUXGATE_ORIGIN_FORBIDDEN',
    `The request comes from a page of another site, ${shown(origin)}. Send it from a page of this server, or with the token in the Authorization header.`,
  )
}
