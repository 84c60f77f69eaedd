import type { GuardOverrides } from '../../http/guard-options.js'
import type { RouteTimeouts } from '../upstream/exchange.js'
import type { Origin } from '../upstream/origin.js'
import type { HeaderChange } from './header-change.js'
import type { PathChange } from './path-change.js'
import type { Predicate } from './predicates.js'

/** Which requests go where, and what is changed on the way. */
export interface Route {
  readonly id: string
  readonly origin: Origin
  /** All must hold. */
  readonly predicates: readonly Predicate[]
  /** Asked in this order; the first that refuses decides. */
  readonly limits: readonly GuardOverrides[]
  readonly pathChanges: readonly PathChange[]
  readonly requestHeaders: readonly HeaderChange[]
  readonly responseHeaders: readonly HeaderChange[]
  /** Whether the upstream is told the Host that the client asked for, rather than its own. */
  readonly preservesHost: boolean
  /** Undefined: those of all upstreams. */
  readonly timeouts: RouteTimeouts | undefined
}
