import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { CheckOptions } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { Costs } from '../core/rule.js'
import type { WarningLogger } from '../validation/warnings.js'
import type { ClientIpOptions } from './client-ip/client-ip.js'
import type { HeaderChoice } from './header-dialects.js'
import type { PathFilterOptions } from './path-filter.js'

/** A value, or a promise of it. */
type Awaitable<T> = T | Promise<T>

/** The response to a counted request, as `countWhen` sees it. */
export interface CountedResponse {
  /** The HTTP status. */
  readonly status: number
  /** The decision about the request. */
  readonly decision: Decision
}

/** The body of a rejection: a string is sent as plain text, an object as JSON. */
export type RejectionMessage = string | object

/**
 * Sends the response to a rejected request. Status and rate limit headers are already set on `reply`, which is the response
 * object of the framework.
 */
export type RejectionHandler<Native, Reply> = (decision: Decision, request: Native, reply: Reply) => unknown

/** Options of the HTTP edge. `Native` and `Reply` are the request and response types of the framework, which hooks receive. */
export interface GuardOptions<Native = unknown, Reply = unknown> extends ClientIpOptions, PathFilterOptions {
  /** The rule set to apply. Default: the handler's own choice. */
  readonly ruleSetId?: string | undefined
  /**
   * Returns the key to count, in place of the rule's `limitScope`: a string, or a number, which counts like the string of its
   * digits. Rules of scope GLOBAL keep their single bucket. If it returns undefined or an empty string, the rule's `onMissingKey`
   * applies.
   */
  readonly key?: ((request: Native) => Awaitable<string | number | bigint | undefined>) | undefined
  /** The cost of a request, multiplied by the rule's `permits`. Requests for which a function returns 0 are not counted. Default 1. */
  readonly permits?: number | ((request: Native) => Awaitable<number>) | undefined
  /** Returns further costs of a request by name, such as `{ tokens: 1200 }`, for rules with `cost`. */
  readonly costs?: ((request: Native) => Awaitable<Costs | undefined>) | undefined
  /** Returns true for requests that are neither limited nor counted. */
  readonly skip?: ((request: Native) => Awaitable<boolean>) | undefined
  /**
   * Called after the response to an allowed request. If it returns false, the charge is refunded. A response that the client did
   * not receive completely stays charged.
   *
   * @example
   * countWhen: ({ status }) => status >= 400
   */
  readonly countWhen?: ((response: CountedResponse, request: Native) => Awaitable<boolean>) | undefined
  /** Sends rejections in place of the problem document. */
  readonly onRejected?: RejectionHandler<Native, Reply> | undefined
  /** The status of rejections, from 400 to 599. Default 429. A rejection because the store fails always has 503. */
  readonly statusCode?: number | undefined
  /** The body of rejections, or a function that returns it. Default: a problem document. Does not apply if the store fails. */
  readonly message?:
    | RejectionMessage
    | ((decision: Decision, request: Native) => Awaitable<RejectionMessage>)
    | undefined
  /** The header that contains the user ID. Default: none, because clients can send any value. */
  readonly userIdHeader?: string | undefined
  /** The header that contains the API key. Default: none, because clients can send any value. */
  readonly apiKeyHeader?: string | undefined
  /**
   * The rate limit headers of responses: `standard` (RateLimit, RateLimit-Policy), `legacy` (X-RateLimit-*), `both`, `false`, an
   * earlier draft of the IETF (`draft-6`, `draft-7`), or a list such as `['draft-6', 'legacy']`. Default `both`.
   */
  readonly headers?: HeaderChoice | undefined
  /** Returns another context for the decision, or undefined to keep the given one. */
  readonly customize?: ContextCustomizer<Native> | undefined
  /** Receives warnings about likely misconfigurations, each once. Default: the logger of the gate, or process warnings. */
  readonly logger?: WarningLogger | undefined
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
export type GuardOverrides = Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'>
