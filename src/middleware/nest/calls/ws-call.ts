/** Messages of WebSocket gateways, with the adapters of `ws` and Socket.IO. */
import type { EdgeHeaders, EdgeRequest } from '../../../http/edge-request.js'
import type { Warnings } from '../../../validation/warnings.js'
import { type ClosingEmitter, closeSignal } from '../../edge/close-signal.js'
import type { NodeRequest } from '../../edge/node-edge.js'
import { messageOf, type NestCall, type NestContext } from './nest-call.js'

/** A client of `ws` or Socket.IO. */
interface WsClient {
  /** Socket.IO; for `ws`, set by the application in `handleConnection`. */
  readonly request?: NodeRequest | undefined
  /** Socket.IO. */
  readonly handshake?: { readonly address?: string | undefined; readonly headers?: EdgeHeaders } | undefined
  readonly connected?: boolean | undefined
  /** `ws`. */
  readonly _socket?: { readonly remoteAddress?: string | undefined } | undefined
  readonly readyState?: number | undefined
  once?(event: string, listener: () => void): unknown
}

/** `readyState` of an open WebSocket. */
const open = 1

/** A message has the path of its event, such as `/chat.send`, and this method. */
const method = 'MESSAGE'

export function wsCall(context: NestContext, warnings: Warnings): NestCall {
  const args = context.getArgs()
  const client = args[0] as WsClient
  const pattern = args.at(-1)
  const isClosed = (): boolean =>
    client.readyState === undefined ? client.connected === false : client.readyState !== open
  return {
    native: client,
    reply: client,
    response: undefined,
    edgeFor({ usesFrameworkIp }): EdgeRequest {
      const headers = client.request?.headers ?? client.handshake?.headers ?? {}
      if (usesFrameworkIp && headers['x-forwarded-for'] !== undefined)
        warnings.warn('FLUXGATE_IDENTITY_UNCONFIGURED', proxyIgnored)
      return {
        method,
        url: `/${typeof pattern === 'string' ? pattern : JSON.stringify(pattern)}`,
        headers,
        remoteAddress:
          client.request?.socket?.remoteAddress ?? client.handshake?.address ?? client._socket?.remoteAddress,
        isAborted: isClosed,
        signal() {
          if (isClosed()) return AbortSignal.abort()
          if (client.once === undefined) return new AbortController().signal
          return closeSignal(client as ClosingEmitter, client.readyState === undefined ? 'disconnect' : 'close')
        },
      }
    },
    isAborted: isClosed,
    setHeaders() {},
    sendsReplies: true,
    prepareReply() {},
    async exceptionOf(rejection) {
      const { WsException } = await import('@nestjs/websockets')
      const { content } = rejection
      const message = messageOf(rejection)
      return new WsException(typeof content === 'string' ? message : { message, ...content })
    },
  }
}

const proxyIgnored =
  'WebSocket clients connect through a proxy, whose address they share, because trust proxy does not apply to messages. Set trustedProxies.'
