import type { IncomingMessage } from 'node:http'
import type { ClientIpOf } from '../../http/client-ip/client-ip.js'
import type { Answer } from '../../http/connections/raw-answer.js'
import type { Guard } from '../../http/guard.js'
import type { AccessLog } from '../access-log.js'
import type { Forwarding } from '../headers/forwarded.js'
import type { IsUntrusted } from '../headers/untrusted-headers.js'
import type { Route } from '../routes/route.js'
import type { UpstreamPool } from '../upstream/pool.js'
import type { ClientRequest } from './client-request.js'
import type { RequestLimits } from './request-target.js'

/** A route and the connections to where it leads. */
export interface OpenRoute {
  readonly route: Route
  readonly pool: UpstreamPool
}

/** What all requests share. */
export interface GatewayParts {
  readonly guard: Guard<IncomingMessage>
  readonly forwarding: Forwarding
  readonly clientIpOf: ClientIpOf
  readonly isUntrustedHeader: IsUntrusted
  readonly limits: RequestLimits
  readonly log: AccessLog | undefined
  /** The first route that takes the request; or the answer, if there is none. */
  findRoute(request: ClientRequest): OpenRoute | Answer
  /** No more requests on a connection after this one. */
  isDraining(): boolean
}
