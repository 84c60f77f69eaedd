import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { canonicalIp } from '../../core/keys/ip-address.js'
import { forwardedValue, isWellFormed } from '../../http/client-ip/forwarded-header.js'
import type { IsTrustedProxy } from '../../http/client-ip/trusted-proxies.js'
import { forwardsLeft } from './max-forwards.js'

/** The other end of a client's connection. */
export interface Peer {
  readonly address: string
  readonly isTrusted: boolean
  /** The value of `for` in its element of `Forwarded`. */
  readonly forwardedFor: string
  readonly scheme: 'http' | 'https'
  readonly port: string
  /** The headers of the previous request, for reuse: for an untrusted peer they depend only on `host`. */
  cached: { readonly host: string; readonly headers: readonly string[] } | undefined
}

/** Longer than any DNS name with a port. Headers with a longer host are not cached, which bounds the memory per connection. */
const maxCachedHost = 260

/**
 * Adds the headers that describe the client connection: `X-Forwarded-*`, `Forwarded`, `Via` and `Max-Forwards`. Values that
 * the client sent are kept only if it is a trusted proxy, because any client can forge them.
 */
export class ForwardedHeaders {
  readonly #isTrusted: IsTrustedProxy | undefined
  readonly #peers = new WeakMap<Socket, Peer>()

  constructor(isTrusted: IsTrustedProxy | undefined) {
    this.#isTrusted = isTrusted
  }

  peerOf(socket: Socket): Peer {
    const known = this.#peers.get(socket)
    if (known !== undefined) return known
    const address = canonicalIp(socket.remoteAddress ?? '') ?? 'unknown'
    const peer: Peer = {
      address,
      isTrusted: this.#isTrusted?.(address, 0) ?? false,
      forwardedFor: forwardedValue(address.includes(':') ? `[${address}]` : address),
      scheme: 'encrypted' in socket && socket.encrypted ? 'https' : 'http',
      port: String(socket.localPort ?? ''),
      cached: undefined,
    }
    this.#peers.set(socket, peer)
    return peer
  }

  addTo(headers: string[], peer: Peer, request: IncomingMessage, host: string): void {
    for (const text of peer.isTrusted ? peerHeaders(peer, host, request.headers) : untrustedPeerHeaders(peer, host))
      headers.push(text)
    addHop(headers, request)
  }
}

/** The headers about an untrusted peer. Ignores the values that it sent. */
function untrustedPeerHeaders(peer: Peer, host: string): readonly string[] {
  if (peer.cached?.host === host) return peer.cached.headers
  const headers = peerHeaders(peer, host, noHeaders)
  if (host.length <= maxCachedHost) peer.cached = { host, headers }
  return headers
}

/** The headers about a peer, as a flat list. Values in `received` are extended. */
function peerHeaders(peer: Peer, host: string, received: ReceivedHeaders): string[] {
  const colon = host.endsWith(']') ? -1 : host.lastIndexOf(':')
  // The host is empty for HTTP/1.0 requests without a Host header.
  const own = `for=${peer.forwardedFor};${host === '' ? '' : `host=${forwardedValue(host)};`}proto=${peer.scheme}`
  const receivedHost = text(received['x-forwarded-host']) ?? host
  return [
    ...(receivedHost === '' ? [] : ['X-Forwarded-Host', receivedHost]),
    'X-Forwarded-For',
    appended(received['x-forwarded-for'], peer.address),
    'X-Forwarded-Proto',
    text(received['x-forwarded-proto']) ?? peer.scheme,
    'X-Forwarded-Port',
    text(received['x-forwarded-port']) ?? ((colon === -1 ? '' : host.slice(colon + 1)) || peer.port),
    'Forwarded',
    // After an unterminated quoted string, parsers would not see the gateway's element.
    appended(isWellFormed(text(received.forwarded) ?? '') ? received.forwarded : undefined, own),
  ]
}

/** Adds `Via` and `Max-Forwards`, which RFC 9110 requires of every proxy. */
function addHop(list: string[], request: IncomingMessage): void {
  const { headers, httpVersion } = request
  list.push('Via', appended(headers.via, `${httpVersion} fluxgate`))
  const sent = headers['max-forwards']
  if (sent === undefined) return
  const left = forwardsLeft(request)
  list.push('Max-Forwards', left === undefined ? String(sent) : String(left - 1))
}

type ReceivedHeaders = Readonly<Record<string, string | string[] | undefined>>

const noHeaders: ReceivedHeaders = Object.freeze({})

const text = (value: ReceivedHeaders[string]): string | undefined =>
  (typeof value === 'string' ? value : value?.join(', ')) || undefined

const appended = (before: ReceivedHeaders[string], own: string): string => {
  const received = text(before)
  return received === undefined ? own : `${received}, ${own}`
}
