import type { Duplex } from 'node:stream'
import type { RouteTimeouts, UpstreamConnection } from './connection.js'
import type { ResponseSink } from './response-parser.js'

export interface UpstreamFailure {
  /**
   * REFUSED: no connection came about. BROKEN: it ended too early. BAD_RESPONSE: what came was not HTTP. TIMEOUT: nothing
   * came in time. STALLED: the client stopped sending. BUSY: all connections were taken for too long.
   */
  readonly kind: 'REFUSED' | 'BROKEN' | 'BAD_RESPONSE' | 'TIMEOUT' | 'STALLED' | 'BUSY'
  /** For whoever runs the gateway. */
  readonly detail: string
  /** A connection that had been idle ended before a byte of the answer: the upstream most likely closed it meanwhile. */
  readonly wasIdle: boolean
}

/** One request to an upstream and its response, as its owner sees it. After `onEnd`, `onFailure` or `onUpgrade` nothing follows. */
export interface Exchange extends ResponseSink {
  readonly method: string
  readonly wantsUpgrade: boolean
  /** Undefined: those of all upstreams. */
  readonly timeouts: RouteTimeouts | undefined
  /** The time to write the request; the connection may not be established yet. */
  onConnection(connection: UpstreamConnection): void
  /** All that has come so far was told; more may take its time. */
  onPause(): void
  /** More may be written. */
  onDrain(): void
  onFailure(failure: UpstreamFailure): void
  /** After a response 101: the connection, and what came behind the response. */
  onUpgrade(socket: Duplex, first: Buffer): void
}
