import type { IncomingMessage } from 'node:http'
import { normalisePath } from '../../core/matching/paths/normalise-path.js'
import type { ClientIpOf } from '../../http/client-ip/client-ip.js'
import type { EdgeHeaders, EdgeRequest } from '../../http/edge-request.js'
import type { RoutedRequest } from '../routes/predicates.js'
import type { Target } from './request-target.js'

/** A request as routes and limits look at it. */
export class ClientRequest implements RoutedRequest, EdgeRequest {
  readonly message: IncomingMessage
  readonly method: string
  /** The path as it was sent, for limits: they look at other readings of it too. */
  readonly url: string
  readonly path: string
  readonly query: string
  readonly host: string
  readonly headers: EdgeHeaders
  readonly remoteAddress: string | undefined
  readonly #clientIpOf: ClientIpOf
  #leaving: AbortController | undefined

  constructor(message: IncomingMessage, { path, query, host }: Target, clientIpOf: ClientIpOf) {
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

  /** Aborts when the client leaves; made only for a request that is held. */
  readonly signal = (): AbortSignal => {
    this.#leaving ??= new AbortController()
    return this.#leaving.signal
  }

  /** The client is gone. */
  leave(): void {
    this.#leaving?.abort()
  }
}

function withoutPort(host: string): string {
  const colon = host.lastIndexOf(':')
  return (colon === -1 || host.endsWith(']') ? host : host.slice(0, colon)).toLowerCase()
}
