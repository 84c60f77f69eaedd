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
  /** The headers of the last request. Those of a peer that is not trusted depend on its `host` alone. */
  latest: { readonly host: string; readonly headers: readonly string[] } | undefined
}

/** Longer than any DNS name with a port. Headers with a longer host are not kept, to bound the memory of a connection. */
const longestHost = 260

/**
 * Writes the headers that describe the client's connection to the upstream. Values that the client itself has sent are kept
 * only if it is a trusted proxy, because any client can write these headers.
 */
export class Forwarding {
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
      latest: undefined,
    }
    this.#peers.set(socket, peer)
    return peer
  }

  addTo(headers: string[], peer: Peer, request: IncomingMessage, host: string): void {
    for (const text of peer.isTrusted ? described(peer, host, request.headers) : describedAlone(peer, host))
      headers.push(text)
    addHop(headers, request)
  }
}

/** The headers about a peer that is not trusted. */
function describedAlone(peer: Peer, host: string): readonly string[] {
  if (peer.latest?.host === host) return peer.latest.headers
  const headers = described(peer, host, nothing)
  if (host.length <= longestHost) peer.latest = { host, headers }
  return headers
}

/** Flat list of the headers about a peer, added to those that it has `said`. */
function described(peer: Peer, host: string, said: Said): string[] {
  const colon = host.endsWith(']') ? -1 : host.lastIndexOf(':')
  // HTTP/1.0 does without a host.
  const own = `for=${peer.forwardedFor};${host === '' ? '' : `host=${forwardedValue(host)};`}proto=${peer.scheme}`
  const saidHost = text(said['x-forwarded-host']) ?? host
  return [
    ...(saidHost === '' ? [] : ['X-Forwarded-Host', saidHost]),
    'X-Forwarded-For',
    appended(said['x-forwarded-for'], peer.address),
    'X-Forwarded-Proto',
    text(said['x-forwarded-proto']) ?? peer.scheme,
    'X-Forwarded-Port',
    text(said['x-forwarded-port']) ?? ((colon === -1 ? '' : host.slice(colon + 1)) || peer.port),
    'Forwarded',
    // Behind an open quotation, readers that start at the left would not see the gateway's element.
    appended(isWellFormed(text(said.forwarded) ?? '') ? said.forwarded : undefined, own),
  ]
}

/** RFC 9110 asks every proxy for both: `Via` shows loops and protocol versions, `Max-Forwards` ends loops. */
function addHop(list: string[], request: IncomingMessage): void {
  const { headers, httpVersion } = request
  list.push('Via', appended(headers.via, `${httpVersion} fluxgate`))
  const sent = headers['max-forwards']
  if (sent === undefined) return
  const left = forwardsLeft(request)
  list.push('Max-Forwards', left === undefined ? String(sent) : String(left - 1))
}

type Said = Readonly<Record<string, string | string[] | undefined>>

const nothing: Said = Object.freeze({})

const text = (value: Said[string]): string | undefined =>
  (typeof value === 'string' ? value : value?.join(', ')) || undefined

const appended = (before: Said[string], own: string): string => {
  const said = text(before)
  return said === undefined ? own : `${said}, ${own}`
}
