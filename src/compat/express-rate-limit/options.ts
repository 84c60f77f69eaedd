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
  totalHits: number
  resetTime: Date | undefined
}

/** The value of `request.rateLimit` on a limited request. */
export interface RateLimitInfo {
  limit: number
  used: number
  remaining: number
  resetTime: Date | undefined
  key: string
}

/** Counts hits. Stores of express-rate-limit fit. */
export interface Store {
  init?: (options: Options) => Awaitable<void>
  get?: (key: string) => Awaitable<ClientRateLimitInfo | undefined>
  increment: (key: string) => Awaitable<ClientRateLimitInfo>
  decrement: (key: string) => Awaitable<void>
  resetKey: (key: string) => Awaitable<void>
  resetAll?: () => Awaitable<void>
  shutdown?: () => Awaitable<void>
  localKeys?: boolean
  prefix?: string
}

/** A store of express-rate-limit 5 and earlier, with a callback. */
export interface LegacyStore {
  incr: (key: string, callback: (error: Error | undefined, hits: number, resetTime: Date | undefined) => void) => void
  decrement: (key: string) => void
  resetKey: (key: string) => void
  resetAll?: () => void
}

/** The drafts of the standard headers. */
export type DraftHeadersVersion = 'draft-6' | 'draft-7' | 'draft-8'

/** Receives errors of stores and warnings about likely misconfigurations. */
export interface Logger {
  error(error: unknown, message?: string): void
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
