import type { IncomingMessage } from 'node:http'
import type { ClientIpOf } from '../../http/client-ip/client-ip.js'
import type { Answer } from '../../http/connections/raw-answer.js'
import type { Guard } from '../../http/guard.js'
import type { AccessLog } from '../access-log.js'
import type { ForwardedHeaders } from '../headers/forwarded.js'
import type { TraceContext } from '../headers/trace-context.js'
import type { IsUntrusted } from '../headers/untrusted-headers.js'
import type { Route } from '../routes/route.js'
import type { UpstreamPool } from '../upstream/pool.js'
import type { ClientRequest } from './client-request.js'
import type { RequestLimits } from './request-target.js'

/** A route and the connection pool of its upstream. */
export interface ActiveRoute {
  readonly route: Route
  readonly pool: UpstreamPool
}

/** Dependencies shared by all requests. */
export interface GatewayParts {
  readonly guard: Guard<IncomingMessage>
  readonly forwarding: ForwardedHeaders
  readonly clientIpOf: ClientIpOf
  readonly isUntrustedHeader: IsUntrusted
  readonly limits: RequestLimits
  readonly log: AccessLog | undefined
  /** Returns the trace context of the request that is being handled. Undefined without an OpenTelemetry SDK. */
  readonly traceContext: (() => TraceContext) | undefined
  /** The first route that matches; or an error response. */
  findRoute(request: ClientRequest): ActiveRoute | Answer
  /** True if connections must be closed after the current response. */
  isDraining(): boolean
}
