import type { IncomingMessage } from 'node:http'
import { type Cidr, inCidr, parseCidr } from '../../core/keys/ip-address.js'
import { ApiProblem } from './api-problem.js'
import { isAmbient } from './tokens.js'

const ipv4 = parseCidr('127.0.0.0/8') as Cidr
const ipv6 = parseCidr('::1') as Cidr

/** Whether only this machine can be meant by a host. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  const address = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name
  return address === 'localhost' || address.endsWith('.localhost') || inCidr(address, ipv4) || inCidr(address, ipv6)
}

const hostOf = (authority: string): string => authority.replace(/:\d*$/, '')

/**
 * Without a token everybody on this machine is an administrator, also the pages that a browser on it has open. A page that
 * has its own name point here is known by that name, and a page of another site by its origin.
 */
export function assertOwnHost({ headers: { host = '' } }: IncomingMessage): void {
  if (host === lastOwnHost) return
  if (isLoopback(hostOf(host))) {
    lastOwnHost = host
    return
  }
  throw new ApiProblem(
    'FLUXGATE_ORIGIN_FORBIDDEN',
    'Without an admin token this server answers only to names of this machine, such as localhost and 127.0.0.1.',
  )
}

/** Nearly all requests name the same one. */
let lastOwnHost = ''

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Changes are not taken from pages of others, where the browser may have sent what identifies its user by itself. */
export function assertOwnOrigin(request: IncomingMessage): void {
  const { origin, host } = request.headers
  if (origin === undefined || safeMethods.has(request.method ?? '') || !isAmbient(request)) return
  if (origin.replace(/^https?:\/\//, '') === host) return
  throw new ApiProblem('FLUXGATE_ORIGIN_FORBIDDEN', 'This request comes from the page of another site.')
}
