import type { Clock } from '../core/clock.js'
import type { CheckOptions } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { ClientIpOptions } from './client-ip/client-ip.js'
import type { PathFilterOptions } from './path-filter.js'
import type { HeaderChoice } from './rate-limit-headers.js'

/** Options of the HTTP edge. `Native` is the request type of the framework, which hooks receive. */
export interface GuardOptions<Native = unknown> extends ClientIpOptions, PathFilterOptions {
  /** The rule set to apply. Default: the handler's own choice. */
  readonly ruleSetId?: string | undefined
  /** The cost of a request, multiplied by the rule's `permits`. Default 1. */
  readonly permits?: number | ((request: Native) => number) | undefined
  /** The header that contains the user ID. Default: none, because clients can send any value. */
  readonly userIdHeader?: string | undefined
  /** The header that contains the API key. Default: none, because clients can send any value. */
  readonly apiKeyHeader?: string | undefined
  /** The rate limit headers of responses. Default `both`. */
  readonly headers?: HeaderChoice | undefined
  /** Returns true for requests that are neither limited nor counted. */
  readonly skip?: ((request: Native) => boolean | Promise<boolean>) | undefined
  /** Returns another context for the decision, or undefined to keep the given one. */
  readonly customize?: ContextCustomizer<Native> | undefined
  /** Time source. Default: the system clock. */
  readonly clock?: Clock | undefined
}

/**
 * Returns the context to decide on, for example with a user ID from a session, or undefined to keep the given one. Called once
 * per request, before the decision.
 */
export type ContextCustomizer<Native = unknown> = (
  context: RequestContext,
  request: Native,
) => RequestContext | undefined | Promise<RequestContext | undefined>

/** Options that a route may set for its own requests. */
export type GuardOverrides = Pick<CheckOptions, 'ruleSetId' | 'permits'>
