import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Cidr, canonicalIp, inCidr } from '../core/ip-address.js'

/** The other end of a client's connection. */
interface Peer {
  readonly address: string
  readonly isTrusted: boolean
  /** Of its element of `Forwarded`. */
  readonly forwardedFor: string
  readonly scheme: 'http' | 'https'
  readonly port: string
}

/**
 * Tells the upstream for whom and how the gateway was asked. What the client itself has said about that is passed on only
 * if it is a trusted proxy: anybody can write these headers.
 */
export class Forwarding {
  readonly #trusted: readonly Cidr[]
  readonly #peers = new WeakMap<Socket, Peer>()

  constructor(trusted: readonly Cidr[]) {
    this.#trusted = trusted
  }

  isTrusted({ socket }: IncomingMessage): boolean {
    return this.#peerOf(socket).isTrusted
  }

  addTo(headers: string[], request: IncomingMessage, host: string): void {
    const peer = this.#peerOf(request.socket)
    const said = peer.isTrusted ? request.headers : nothing
    const colon = host.endsWith(']') ? -1 : host.lastIndexOf(':')
    // HTTP/1.0 does without a host.
    const own = `for=${peer.forwardedFor};${host === '' ? '' : `host=${quotedHost(host)};`}proto=${peer.scheme}`
    const saidHost = text(said['x-forwarded-host']) ?? host
    if (saidHost !== '') headers.push('X-Forwarded-Host', saidHost)
    headers.push(
      'X-Forwarded-For',
      appended(said['x-forwarded-for'], peer.address),
      'X-Forwarded-Proto',
      text(said['x-forwarded-proto']) ?? peer.scheme,
      'X-Forwarded-Port',
      text(said['x-forwarded-port']) ?? (colon === -1 ? peer.port : host.slice(colon + 1)),
      'Forwarded',
      appended(said.forwarded, own),
    )
  }

  #peerOf(socket: Socket): Peer {
    const known = this.#peers.get(socket)
    if (known !== undefined) return known
    const address = canonicalIp(socket.remoteAddress ?? '') ?? 'unknown'
    const peer: Peer = {
      address,
      isTrusted: this.#trusted.some((network) => inCidr(address, network)),
      forwardedFor: address.includes(':') ? `"[${address}]"` : address,
      scheme: 'encrypted' in socket && socket.encrypted ? 'https' : 'http',
      port: String(socket.localPort ?? ''),
    }
    this.#peers.set(socket, peer)
    return peer
  }
}

type Said = Readonly<Record<string, string | string[] | undefined>>

const nothing: Said = Object.freeze({})

const text = (value: Said[string]): string | undefined =>
  (typeof value === 'string' ? value : value?.join(', ')) || undefined

const appended = (before: Said[string], own: string): string => {
  const said = text(before)
  return said === undefined ? own : `${said}, ${own}`
}

/** A host with a port is no token. What would end the quotation is refused before, with the request. */
const quotedHost = (host: string): string => (/^[\w.-]+$/.test(host) ? host : `"${host}"`)
