import type { GuardOverrides } from '../../http/guard-options.js'
import type { RouteTimeouts } from '../upstream/exchange.js'
import type { Origin } from '../upstream/origin.js'
import type { HeaderChange } from './header-change.js'
import type { PathChange } from './path-change.js'
import type { Predicate } from './predicates.js'

/** A route: the requests it matches, their upstream, and the changes to requests and responses. */
export interface Route {
  readonly id: string
  readonly origin: Origin
  /** A request matches if all predicates hold. */
  readonly predicates: readonly Predicate[]
  /** Checked in this order. The first limit that rejects the request decides. */
  readonly limits: readonly GuardOverrides[]
  readonly pathChanges: readonly PathChange[]
  readonly requestHeaders: readonly HeaderChange[]
  readonly responseHeaders: readonly HeaderChange[]
  /** Forward the Host header of the client instead of the upstream's own host. */
  readonly preservesHost: boolean
  /** Default: the timeouts of the gateway. */
  readonly timeouts: RouteTimeouts | undefined
}
