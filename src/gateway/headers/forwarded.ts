import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { canonicalIp } from '../../core/keys/ip-address.js'
import { forwardedValue, isWellFormed } from '../../http/client-ip/forwarded-header.js'
import type { IsTrustedProxy } from '../../http/client-ip/trusted-proxies.js'
import { forwardsLeft } from './max-forwards.js'

/** The other end of a client's connection. */
interface Peer {
  readonly address: string
  readonly isTrusted: boolean
  /** The value of `for` in its element of `Forwarded`. */
  readonly forwardedFor: string
  readonly scheme: 'http' | 'https'
  readonly port: string
}

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

  isTrusted({ socket }: IncomingMessage): boolean {
    return this.#peerOf(socket).isTrusted
  }

  addTo(headers: string[], request: IncomingMessage, host: string): void {
    const peer = this.#peerOf(request.socket)
    const said = peer.isTrusted ? request.headers : nothing
    const colon = host.endsWith(']') ? -1 : host.lastIndexOf(':')
    // HTTP/1.0 does without a host.
    const own = `for=${peer.forwardedFor};${host === '' ? '' : `host=${forwardedValue(host)};`}proto=${peer.scheme}`
    const saidHost = text(said['x-forwarded-host']) ?? host
    if (saidHost !== '') headers.push('X-Forwarded-Host', saidHost)
    headers.push(
      'X-Forwarded-For',
      appended(said['x-forwarded-for'], peer.address),
      'X-Forwarded-Proto',
      text(said['x-forwarded-proto']) ?? peer.scheme,
      'X-Forwarded-Port',
      text(said['x-forwarded-port']) ?? ((colon === -1 ? '' : host.slice(colon + 1)) || peer.port),
      'Forwarded',
      // Behind an open quotation, readers that start at the left would not see the gateway's element.
      appended(isWellFormed(text(said.forwarded) ?? '') ? said.forwarded : undefined, own),
    )
    addHop(headers, request)
  }

  #peerOf(socket: Socket): Peer {
    const known = this.#peers.get(socket)
    if (known !== undefined) return known
    const address = canonicalIp(socket.remoteAddress ?? '') ?? 'unknown'
    const peer: Peer = {
      address,
      isTrusted: this.#isTrusted?.(address, 0) ?? false,
      forwardedFor: forwardedValue(address.includes(':') ? `[${address}]` : address),
      scheme: 'encrypted' in socket && socket.encrypted ? 'https' : 'http',
      port: String(socket.localPort ?? ''),
    }
    this.#peers.set(socket, peer)
    return peer
  }
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
