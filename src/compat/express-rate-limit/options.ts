import type { NodeRequest, NodeResponse } from '../../middleware/edge/node-edge.js'

/** A value, or a promise of it. */
type Awaitable<T> = T | Promise<T>

/** A request of Express, as far as it is used. */
export interface LimitedRequest extends NodeRequest {
  readonly ip?: string | undefined
  readonly app?: { get(setting: string): unknown } | undefined
}

/** A response of Express, as far as it is used. */
export interface LimitedResponse extends NodeResponse {
  status(code: number): unknown
  send(body: unknown): unknown
  append(name: string, value: string): unknown
  once(event: 'close' | 'finish' | 'error', listener: () => void): unknown
}

/** A function of the request that determines a value. */
export type ValueDeterminingMiddleware<T> = (request: any, response: any) => Awaitable<T>

/** The hits of a key in its window. */
export interface ClientRateLimitInfo {
  /** The number of hits in the current window. */
  totalHits: number
  /** The end of the window; undefined if the store does not know it. */
  resetTime: Date | undefined
}

/** The value of `request.rateLimit` on a limited request. */
export interface RateLimitInfo {
  /** The maximum number of requests per window. */
  limit: number
  /** The number of requests in the current window, this one included. */
  used: number
  /** The number of requests left in the window; at least 0. */
  remaining: number
  /** The end of the window; undefined if the store does not know it. */
  resetTime: Date | undefined
  /** The key of the request. */
  key: string
}

/** Counts hits. Stores of express-rate-limit fit. */
export interface Store {
  /** Called once with the options of the limit. */
  init?: (options: Options) => Awaitable<void>
  /** Returns the hits of a key, or undefined if it has no window. */
  get?: (key: string) => Awaitable<ClientRateLimitInfo | undefined>
  /** Counts a hit and returns the hits of the window. */
  increment: (key: string) => Awaitable<ClientRateLimitInfo>
  /** Removes a hit, as `skipFailedRequests` and `skipSuccessfulRequests` require. */
  decrement: (key: string) => Awaitable<void>
  /** Resets a key. */
  resetKey: (key: string) => Awaitable<void>
  /** Resets all keys. */
  resetAll?: () => Awaitable<void>
  /** Releases timers and connections. */
  shutdown?: () => Awaitable<void>
  /** True if the keys are only in this process, so that two stores never count the same key. */
  localKeys?: boolean
  /** The prefix of the keys. Stores with the same prefix may count the same key. */
  prefix?: string
}

/** A store of express-rate-limit 5 and earlier, with a callback. */
export interface LegacyStore {
  /** Counts a hit and passes the result to the callback. */
  incr: (key: string, callback: (error: Error | undefined, hits: number, resetTime: Date | undefined) => void) => void
  /** Removes a hit. */
  decrement: (key: string) => void
  /** Resets a key. */
  resetKey: (key: string) => void
  /** Resets all keys. */
  resetAll?: () => void
}

/** The drafts of the standard headers. */
export type DraftHeadersVersion = 'draft-6' | 'draft-7' | 'draft-8'

/** Receives errors of stores and warnings about likely misconfigurations. */
export interface Logger {
  /** Logs an error of the store. */
  error(error: unknown, message?: string): void
  /** Logs a warning about a likely misconfiguration. */
  warn(error: unknown, message?: string): void
}

/** Options of `rateLimit`, as in express-rate-limit 8. */
export interface Options {
  /** The length of a window, which starts with the first request of a key. Default one minute. */
  windowMs: number
  /** The maximum number of requests per window; 0 rejects all. Default 5. */
  limit: number | ValueDeterminingMiddleware<number>
  /** The body of rejections. */
  message: any | ValueDeterminingMiddleware<any>
  /** The status of rejections. Default 429. */
  statusCode: number
  /** Sends `X-RateLimit-*`. Default true. */
  legacyHeaders: boolean
  /** Sends the headers of an IETF draft; true means draft 6. Default false. */
  standardHeaders: boolean | DraftHeadersVersion
  /** The name of the limit in the headers of draft 8. */
  identifier: string | ValueDeterminingMiddleware<string>
  /** The value of `Retry-After` in seconds. Default: until the window ends. */
  retryAfter: number | ValueDeterminingMiddleware<number> | undefined
  /** The property of the request that contains the state of its limit. Default `rateLimit`. */
  requestPropertyName: string
  /** Does not count requests with a failed response. */
  skipFailedRequests: boolean
  /** Does not count requests with a successful response. */
  skipSuccessfulRequests: boolean
  /** The key of a request. Default: its IP address, and the network of an IPv6 address. */
  keyGenerator: ValueDeterminingMiddleware<string>
  /** IPv6 addresses with the same prefix of this many bits share a key; false uses the whole address. Default 56. */
  ipv6Subnet: number | ValueDeterminingMiddleware<number | false> | false
  /** Sends rejections. */
  handler: (request: any, response: any, next: (error?: unknown) => void, options: Options) => void
  /** Returns true for requests that are not limited. */
  skip: ValueDeterminingMiddleware<boolean>
  /** Returns true for successful responses. Default: the status is below 400. */
  requestWasSuccessful: ValueDeterminingMiddleware<boolean>
  /** Where hits are counted. Default: in this process. */
  store: Store | LegacyStore
  /** Reports likely misconfigurations. Default true. */
  validate: boolean | Readonly<Record<string, boolean>>
  /** Allows requests while the store fails. Default false: the error goes to `next`. */
  passOnStoreError: boolean
  /** Default: the console. */
  logger: Logger
  /** @deprecated Use `legacyHeaders`. */
  headers?: boolean
  /** @deprecated Use `limit`. */
  max?: number | ValueDeterminingMiddleware<number>
}
