import type { IncomingMessage } from 'node:http'
import { normalisePath } from '../../core/matching/paths/normalise-path.js'
import type { ClientIpOf } from '../../http/client-ip/client-ip.js'
import type { EdgeHeaders, EdgeRequest } from '../../http/edge-request.js'
import type { RoutedRequest } from '../routes/predicates.js'
import type { RequestTarget } from './request-target.js'

/** The properties of a request that routes and limits match. */
export class ClientRequest implements RoutedRequest, EdgeRequest {
  readonly message: IncomingMessage
  readonly method: string
  /** The path before lower-casing and decoding, for limits: they match its other interpretations too. */
  readonly url: string
  readonly path: string
  readonly query: string
  readonly host: string
  readonly headers: EdgeHeaders
  readonly remoteAddress: string | undefined
  readonly #clientIpOf: ClientIpOf
  #disconnected: AbortController | undefined
  #isEnded = false
  #endListeners: (() => void)[] | undefined

  constructor(message: IncomingMessage, { path, query, host }: RequestTarget, clientIpOf: ClientIpOf) {
    this.message = message
    this.method = message.method ?? 'GET'
    this.path = normalisePath(path)
    this.query = query
    this.url = path
    this.host = withoutPort(host)
    this.headers = message.headers
    this.remoteAddress = message.socket.remoteAddress
    this.#clientIpOf = clientIpOf
  }

  clientIp(): string | undefined {
    return this.#clientIpOf(this.remoteAddress, this.headers)
  }

  /** Aborts when the client disconnects. Created only for held requests. */
  readonly signal = (): AbortSignal => {
    this.#disconnected ??= new AbortController()
    return this.#disconnected.signal
  }

  onEnd(listener: () => void): void {
    if (this.#isEnded) listener()
    else {
      this.#endListeners ??= []
      this.#endListeners.push(listener)
    }
  }

  /** Called when the response has ended, or the client has disconnected. */
  disconnect(): void {
    this.#disconnected?.abort()
    this.#isEnded = true
    for (const listener of this.#endListeners ?? []) listener()
  }
}

function withoutPort(host: string): string {
  const colon = host.lastIndexOf(':')
  return (colon === -1 || host.endsWith(']') ? host : host.slice(0, colon)).toLowerCase()
}
