import { parseDuration } from './duration.js'

/** A value, or a promise of it. */
type Awaitable<T> = T | Promise<T>

/** A request of Fastify, as far as it is used. */
export interface LimitedRequest {
  readonly ip: string
  readonly routeOptions?: { readonly config?: unknown } | undefined
}

/** The state of a limit when a request is rejected. */
export interface ErrorResponseContext {
  /** 429, or 403 if the key is banned. */
  statusCode: number
  /** True if the key exceeded the limit more than `ban` times. */
  ban: boolean
  /** The time until the window ends, as text. */
  after: string
  /** The maximum number of requests per window. */
  max: number
  /** The time until the window ends, in milliseconds. */
  ttl: number
}

/** Options of one limit, as in `@fastify/rate-limit` 11. */
export interface RateLimitOptions {
  /** The maximum number of requests per window. Default 1000. */
  max?: number | ((request: any, key: any) => Awaitable<number>) | undefined
  /** The window in milliseconds, or text such as `1 minute`. Default one minute. */
  timeWindow?: number | string | ((request: any, key: any) => Awaitable<number>) | undefined
  /** The hook in which requests are limited. Default `onRequest`. */
  hook?: string | undefined
  /** Keys that are not limited, or a function. */
  allowList?: readonly string[] | ((request: any, key: any) => Awaitable<boolean>) | null | undefined
  /** After this many rejections, responses have status 403. Default: never. */
  ban?: number | undefined
  /** Called for each request of a banned key. */
  onBanReach?: ((request: any, key: string) => void) | undefined
  /** Called for each allowed request. */
  onExceeding?: ((request: any, key: string) => void) | undefined
  /** Called for each rejected request. */
  onExceeded?: ((request: any, key: string) => void) | undefined
  /** Rejected requests restart the window. */
  continueExceeding?: boolean | undefined
  /** Each rejected request doubles the window. */
  exponentialBackoff?: boolean | undefined
  /** Returns the key of a request. Default: its IP address, or the network of an IPv6 address. */
  keyGenerator?: ((request: any) => Awaitable<string | number>) | undefined
  /** IPv6 addresses with the same prefix of this many bits share a key. Default 64. */
  ipv6Subnet?: number | undefined
  /** Returns the error of a rejection, or an object that is its body. */
  errorResponseBuilder?: ((request: any, context: ErrorResponseContext) => object) | undefined
  /** Headers of rejections; false leaves one out. */
  addHeaders?: Readonly<Record<string, boolean>> | undefined
  /** Headers of allowed requests; false leaves one out. */
  addHeadersOnExceeding?: Readonly<Record<string, boolean>> | undefined
  /** Allows requests while the store fails. */
  skipOnError?: boolean | undefined
  /** Routes with the same group share their limit. */
  groupId?: string | undefined
  /** The maximum number of keys in memory. Default 5000. */
  cache?: number | undefined
}

/** Options of the plugin. */
export interface PluginOptions extends RateLimitOptions {
  /** Limits all routes. Default true. */
  global?: boolean | undefined
  /** Uses the header names of the IETF draft. */
  enableDraftSpec?: boolean | undefined
  /** An ioredis or node-redis client, or a URI. Default: counts in memory. */
  redis?: object | string | undefined
  /** Prefix of the keys in Redis. Default `fastify-rate-limit-`. */
  nameSpace?: string | undefined
  /** A store class, as for `@fastify/rate-limit`. */
  store?: (new (options: any) => any) | undefined
}

interface Labels {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
  readonly retryAfter: string
}

const labels = (prefix: string): Labels => ({
  limit: `${prefix}ratelimit-limit`,
  remaining: `${prefix}ratelimit-remaining`,
  reset: `${prefix}ratelimit-reset`,
  retryAfter: 'retry-after',
})

/** Complete options of one limit. */
export type Settings = Omit<RateLimitOptions, 'max' | 'timeWindow' | 'ban' | 'ipv6Subnet' | 'hook'> & {
  readonly max: Exclude<RateLimitOptions['max'], undefined>
  readonly timeWindow: Exclude<RateLimitOptions['timeWindow'], string | undefined>
  readonly ban: number
  readonly ipv6Subnet: number
  readonly hook: string
  readonly labels: Labels
}

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0

/** Completes options. Values of the wrong type are replaced by the default, as in the original. */
export function completeSettings(options: RateLimitOptions, enableDraftSpec: boolean): Settings {
  const { max, timeWindow, ban, ipv6Subnet, hook, groupId } = options
  if (groupId !== undefined && typeof groupId !== 'string') throw new Error('groupId must be a string')
  const window = typeof timeWindow === 'string' ? parseDuration(timeWindow) : timeWindow
  if (typeof timeWindow === 'string' && window === undefined)
    throw new Error(
      `timeWindow must be milliseconds or text such as '1 minute'; received ${JSON.stringify(timeWindow)}.`,
    )
  return {
    ...options,
    max: isCount(max) ? Math.trunc(max) : typeof max === 'function' ? max : 1000,
    timeWindow: isCount(window) ? Math.trunc(window) : typeof window === 'function' ? window : 60_000,
    ban: isCount(ban) ? Math.trunc(ban) : -1,
    ipv6Subnet: isCount(ipv6Subnet) && ipv6Subnet <= 128 ? Math.trunc(ipv6Subnet) : 64,
    hook: hook ?? 'onRequest',
    labels: labels(enableDraftSpec ? '' : 'x-'),
  }
}
