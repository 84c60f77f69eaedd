import type { IncomingMessage } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import type { TraceContext } from '../headers/trace-context.js'
import type { ResponseHead } from './response-head.js'

export interface UpstreamTimeouts {
  readonly connectTimeoutMs: number
  /** From the end of the request to the end of the response head, however slowly its bytes arrive. */
  readonly responseTimeoutMs: number
  /** Longest pause within a body, in either direction; 0 disables it. */
  readonly idleTimeoutMs: number
  /** How long an idle connection is kept. */
  readonly keepAliveMs: number
}

/** Timeouts that a route can override. */
export type RouteTimeouts = Partial<Pick<UpstreamTimeouts, 'connectTimeoutMs' | 'responseTimeoutMs'>>

export interface UpstreamFailure {
  /**
   * REFUSED: no connection was established. BROKEN: the connection ended too early. BAD_RESPONSE: the response is not valid
   * HTTP/1.1. TIMEOUT: the upstream was too slow. STALLED: the client stopped sending. BUSY: all connections were in use
   * for too long. UNSENDABLE: the request cannot be expressed in HTTP/1.1.
   */
  readonly kind: 'REFUSED' | 'BROKEN' | 'BAD_RESPONSE' | 'TIMEOUT' | 'STALLED' | 'BUSY' | 'UNSENDABLE'
  /** For operators; never sent to clients. */
  readonly detail: string
}

export interface UpstreamBody {
  /** `Content-Length` of the client's request; undefined if it is chunked. */
  readonly length: number | undefined
  /** The body as a stream of its own, which an upstream client may destroy without touching the client's connection. */
  readonly stream: () => Readable
  readonly message: IncomingMessage
}

/** One request to an upstream and the callbacks for its response. Nothing follows `onEnd`, `onFailure` or `onUpgrade`. */
export interface Exchange {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Flat list of names and values, without those that frame the message or manage the connection. */
  readonly headers: readonly string[]
  /** Undefined without an OpenTelemetry SDK. */
  readonly trace: TraceContext | undefined
  readonly body: UpstreamBody | undefined
  readonly isUpgrade: boolean
  /** True if the request is idempotent and has no body, so that it may use another connection if it was not sent. */
  readonly isRetryable: boolean
  /** True if the request has `Expect: 100-continue` or trailers. undici supports neither. */
  readonly needsNodeTransport: boolean
  /** Default: the timeouts of all upstreams. */
  readonly timeouts: RouteTimeouts | undefined
  /** The client address that the connection counts for. */
  clientAddress(): string
  /** A 1xx response other than 101. */
  onInformation(status: number, headers: readonly string[]): void
  onHead(head: ResponseHead): void
  /** `isLast`: the body ends with this chunk. Returns false to pause until `UpstreamRequest.resume`. */
  onData(chunk: Buffer, isLast: boolean): boolean
  onEnd(trailers: readonly string[]): void
  onFailure(failure: UpstreamFailure): void
  /** The response was 101: the connection now belongs to the exchange. */
  onUpgrade(head: ResponseHead, socket: Duplex): void
}
