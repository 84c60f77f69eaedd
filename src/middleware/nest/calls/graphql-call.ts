/** Fields of GraphQL operations. Each query, mutation and subscription field counts as one request. */
import type { EdgeHeaders, EdgeRequest } from '../../../http/edge-request.js'
import type { Warnings } from '../../../validation/warnings.js'
import { type ClosingEmitter, closeSignal } from '../../edge/close-signal.js'
import { frameworkIp, NodeEdge, type NodeRequest } from '../../edge/node-edge.js'
import { type NestRequest, type NestResponse, setHeaders } from './http-call.js'
import { messageOf, type NestCall } from './nest-call.js'

/** The part of GraphQL's `info` that is used. */
interface FieldInfo {
  readonly path: { readonly prev?: unknown }
}

/** The usual fields of the GraphQL context in Apollo, Mercurius and Yoga, and in subscriptions over WebSocket. */
interface GraphqlContext {
  readonly req?: unknown
  readonly request?: unknown
  readonly res?: unknown
  readonly reply?: unknown
  readonly extra?: unknown
}

/** True for a field of Query, Mutation or Subscription. Guards of Nest can also be enabled for the fields of objects. */
export const isRootField = ([, , , info]: readonly unknown[]): boolean =>
  (info as FieldInfo | undefined)?.path.prev === undefined

export function graphqlCall(args: readonly unknown[], warnings: Warnings): NestCall {
  const context = (args[2] ?? {}) as GraphqlContext
  const request = requestIn(context)
  if (request === undefined) warnings.warn('FLUXGATE_IDENTITY_UNCONFIGURED', requestMissing)
  const response = responseIn(context, request)
  const raw = request?.raw ?? request
  return {
    native: request ?? context,
    reply: response ?? context,
    response: response?.raw ?? response,
    edgeFor: (guard) =>
      raw === undefined || response === undefined
        ? plainEdge(raw, request && frameworkIp(guard, request))
        : new NodeEdge(raw, response.raw ?? response, frameworkIp(guard, request as object), request?.originalUrl),
    isAborted: () => response?.sent === true || (response?.raw ?? response)?.headersSent === true,
    setHeaders(outcome) {
      if (response !== undefined) setFieldHeaders(response, outcome)
    },
    sendsReplies: false,
    prepareReply() {},
    async exceptionOf(rejection) {
      const { HttpException } = await import('@nestjs/common')
      const { content, status, decision } = rejection
      const details = { code: 'RATE_LIMITED', status, retryAfterMs: decision?.retryAfterMs ?? null }
      // GraphQL copies `extensions` to the error that clients get.
      return Object.assign(new HttpException(content, status), { message: messageOf(rejection), extensions: details })
    },
  }
}

const requestMissing =
  'GraphQL operations have no request in their context, so clients without a key share one limit. Return { req, res } from the context function of GraphQLModule.'

const isRequest = (value: unknown): value is NestRequest =>
  typeof (value as { headers?: unknown } | null | undefined)?.headers === 'object'

function requestIn({ req, request, reply, extra }: GraphqlContext): NestRequest | undefined {
  const nested = [extra, (req as GraphqlContext | undefined)?.extra, reply] as (GraphqlContext | undefined)[]
  return [req, request, ...nested.map((one) => one?.request)].find(isRequest)
}

const isResponse = (value: unknown): value is NestResponse =>
  typeof (value as { header?: unknown } | null | undefined)?.header === 'function'

/** Express stores the response on its requests. */
const responseIn = ({ res, reply }: GraphqlContext, request: NestRequest | undefined): NestResponse | undefined =>
  [res, reply, (request as GraphqlContext | undefined)?.res].find(isResponse)

/** The edge of an operation whose response is unknown, such as a subscription. */
function plainEdge(raw: NodeRequest | undefined, ip: string | undefined): EdgeRequest {
  const socket = raw?.socket as (NodeRequest['socket'] & Partial<ClosingEmitter>) | undefined
  return {
    method: raw?.method ?? 'POST',
    url: raw?.originalUrl ?? raw?.url ?? '/',
    headers: raw?.headers ?? ({} as EdgeHeaders),
    remoteAddress: ip ?? socket?.remoteAddress ?? raw?.ip,
    signal() {
      if (socket?.destroyed) return AbortSignal.abort()
      return socket?.once === undefined ? new AbortController().signal : closeSignal(socket as ClosingEmitter)
    },
  }
}

/** Several fields of an operation may have the same limit, whose policy is listed once. */
function setFieldHeaders(response: NestResponse, outcome: Parameters<NestCall['setHeaders']>[0]): void {
  const { 'RateLimit-Policy': policy = '', 'Content-Type': _, ...headers } = outcome.headers
  if (!String(response.getHeader('ratelimit-policy') ?? '').includes(policy)) {
    setHeaders(response, outcome)
    return
  }
  for (const [name, value] of Object.entries(headers)) response.header(name, value)
}
