/** Requests of Express and Fastify. */
import { mergeHeaders } from '../../../http/rate-limit-headers.js'
import { closesConnection, frameworkIp, NodeEdge, type NodeRequest, type NodeResponse } from '../../edge/node-edge.js'
import type { NestCall } from './nest-call.js'

/** A request of Express, or of Fastify with Node's request in `raw`. */
export type NestRequest = NodeRequest & {
  /** Fastify: the request of Node. */
  readonly raw?: NodeRequest
}

/** A response of Express, or a reply of Fastify with Node's response in `raw`. */
export type NestResponse = NodeResponse & {
  /** Fastify: the response of Node. */
  readonly raw?: NodeResponse
  /** Fastify: true if the reply was sent or hijacked. */
  readonly sent?: boolean
  /** Sets a header field. */
  header(name: string, value: string): unknown
  /** Fastify only. */
  code?(status: number): unknown
}

export function httpCall(request: NestRequest, response: NestResponse): NestCall {
  const raw = request.raw ?? request
  const rawResponse = response.raw ?? response
  let edge: NodeEdge | undefined
  return {
    native: request,
    reply: response,
    response: rawResponse,
    edgeFor(guard) {
      edge = new NodeEdge(raw, rawResponse, frameworkIp(guard, request), request.originalUrl)
      return edge
    },
    isAborted: () => response.sent === true || edge?.isAborted() === true,
    setHeaders: (outcome) => setHeaders(response, outcome),
    sendsReplies: true,
    prepareReply: ({ status }) => {
      if (closesConnection(raw)) response.header('Connection', 'close')
      // Fastify takes the status in `code`, Express in `statusCode`.
      if (response.raw === undefined) response.statusCode = status
      else response.code?.(status)
    },
    async exceptionOf({ content, status, headers }) {
      if (closesConnection(raw)) response.header('Connection', 'close')
      // Nest sends the content as JSON, even if it is a string.
      if (typeof content === 'object') response.header('Content-Type', headers['Content-Type'] as string)
      // Imported on demand, so that this entry loads without Nest.
      const { HttpException } = await import('@nestjs/common')
      return new HttpException(content, status)
    },
  }
}

/** Sets all headers but that of the body, which an exception filter sends. */
export function setHeaders(response: NestResponse, outcome: Parameters<NestCall['setHeaders']>[0]): void {
  const headers = mergeHeaders(outcome.headers, response, outcome.kind === 'REJECTED')
  for (const name in headers) if (name !== 'Content-Type') response.header(name, headers[name] as string)
}
