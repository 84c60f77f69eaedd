import { setDraftHeaders, setLegacyHeaders, setRetryAfter } from './headers.js'
import { ipKeyGenerator } from './ip-key.js'
import { Misconfigurations } from './misconfigurations.js'
import type {
  ClientRateLimitInfo,
  DraftHeadersVersion,
  LimitedRequest,
  LimitedResponse,
  Options,
  RateLimitInfo,
  Store,
} from './options.js'
import { MemoryStore, promisedStore } from './stores.js'

type Next = (error?: unknown) => void

/** A middleware for Express. */
export interface RateLimitRequestHandler {
  (request: any, response: any, next: Next): Promise<void>
  /** Resets the hits of a key. */
  resetKey(key: string): void
  /** The hits of a key; undefined if it has none. Throws if the store cannot be read. */
  getKey(key: string): Promise<ClientRateLimitInfo | undefined> | ClientRateLimitInfo | undefined
}

type Configuration = Omit<Options, 'store' | 'standardHeaders'> & {
  readonly store: Store
  readonly standardHeaders: false | DraftHeadersVersion
}

/** Arguments in the order of the console: the message first. */
const consoleLogger: Options['logger'] = {
  error: (...parts) => console.error(...parts.reverse()),
  warn: (...parts) => console.warn(...parts.reverse()),
}

/**
 * Creates a rate limiting middleware with the options of express-rate-limit 8.
 *
 * @example
 * app.use(rateLimit({ windowMs: 15 * 60 * 1000, limit: 100 }))
 */
export function rateLimit(passed: Partial<Options> = {}): RateLimitRequestHandler {
  const given = Object.fromEntries(
    Object.entries(passed).filter(([, value]) => value !== undefined),
  ) as Partial<Options>
  const logger = given.logger ?? consoleLogger
  if (typeof logger.error !== 'function' || typeof logger.warn !== 'function')
    throw new TypeError('logger must be an object with the functions error and warn.')
  const checks = new Misconfigurations(given.validate ?? true, logger)
  checks.options(given)
  const config = configuration(given, logger, checks)
  const { store } = config
  const isFunction = (method: unknown): boolean => typeof method === 'function'
  const optional = [store.init, store.resetAll].filter((method) => method !== undefined)
  if (![store.increment, store.decrement, store.resetKey, ...optional].every(isFunction))
    throw new TypeError(
      'An invalid store was passed: increment, decrement and resetKey, and init and resetAll if present, must be functions.',
    )
  checks.unsharedStore(store)
  checks.creation()
  initialize(config)
  const middleware = async (request: any, response: any, next: Next): Promise<void> => {
    let isAllowed: boolean
    try {
      isAllowed = await limit(config, checks, request, response, next)
    } catch (error) {
      next(error)
      return
    }
    if (isAllowed) next()
  }
  return Object.assign(middleware, {
    resetKey: (key: string) => store.resetKey(key),
    getKey(key: string) {
      if (typeof store.get !== 'function') throw new Error('The store cannot be read: it has no get function.')
      return store.get(key)
    },
  })
}

function configuration(given: Partial<Options>, logger: Options['logger'], checks: Misconfigurations): Configuration {
  const { standardHeaders = false } = given
  const config: Configuration = {
    windowMs: 60_000,
    limit: given.max ?? 5,
    message: 'Too many requests, please try again later.',
    statusCode: 429,
    legacyHeaders: given.headers ?? true,
    identifier: (request) => `${request[config.requestPropertyName].limit}-in-${windowText(config.windowMs)}`,
    retryAfter: undefined,
    requestPropertyName: 'rateLimit',
    skipFailedRequests: false,
    skipSuccessfulRequests: false,
    requestWasSuccessful: (_, response) => response.statusCode < 400,
    skip: () => false,
    async keyGenerator(request: LimitedRequest, response: LimitedResponse) {
      checks.request(request)
      const { ipv6Subnet } = config
      const bits = typeof ipv6Subnet === 'function' ? await ipv6Subnet(request, response) : ipv6Subnet
      return ipKeyGenerator(request.ip as string, bits)
    },
    ipv6Subnet: 56,
    async handler(request, response) {
      response.status(config.statusCode)
      const { message } = config
      const body = typeof message === 'function' ? await message(request, response) : message
      if (!response.writableEnded) response.send(body)
    },
    passOnStoreError: false,
    validate: true,
    ...given,
    logger,
    standardHeaders: standardHeaders === true ? 'draft-6' : standardHeaders,
    store: promisedStore(given.store ?? new MemoryStore()),
  }
  return config
}

/** `15min`, `1hr`, `2hrs`, `1day`. */
function windowText(ms: number): string {
  const minutes = ms / 60_000
  if (minutes < 1) return `${ms / 1000}sec`
  if (minutes < 60) return `${minutes}min`
  const [count, unit] = minutes < 1440 ? [minutes / 60, 'hr'] : [minutes / 1440, 'day']
  return `${count}${unit}${count > 1 ? 's' : ''}`
}

function initialize({ store, logger, ...config }: Configuration): void {
  if (store.init === undefined) return
  const report = (error: unknown): void => logger.error(error, 'The store could not be initialized.')
  try {
    Promise.resolve(store.init({ ...config, logger, store })).catch(report)
  } catch (error) {
    report(error)
  }
}

/** Resolves to true if the request may go on. Otherwise the response is sent. */
async function limit(
  config: Configuration,
  checks: Misconfigurations,
  request: any,
  response: LimitedResponse,
  next: Next,
): Promise<boolean> {
  const { store, logger, windowMs } = config
  const outcome = responseOutcome(config, response)
  if (await config.skip(request, response)) return true
  const key = await config.keyGenerator(request, response)
  let counted: ClientRateLimitInfo
  try {
    counted = await store.increment(key)
  } catch (error) {
    if (!config.passOnStoreError) throw error
    logger.error(error, 'The store failed; allowing the request without a limit.')
    return true
  }
  const { totalHits, resetTime } = counted
  checks.hits(totalHits)
  checks.counted(request, store, key)
  const max = typeof config.limit === 'function' ? await config.limit(request, response) : config.limit
  checks.limit(max)
  const info: RateLimitInfo = { limit: max, used: totalHits, remaining: Math.max(max - totalHits, 0), resetTime, key }
  // The name of `used` in versions before 7, hidden from iteration.
  Object.defineProperty(info, 'current', { value: totalHits })
  request[config.requestPropertyName] = info
  if (!response.headersSent) await setHeaders(config, checks, info, request, response)
  decrementAfter(outcome, config, info, request, response)
  if (totalHits <= max) return true
  if (config.legacyHeaders || config.standardHeaders) {
    const { retryAfter } = config
    const seconds = typeof retryAfter === 'function' ? await retryAfter(request, response) : retryAfter
    setRetryAfter(response, info, windowMs, seconds)
  }
  await config.handler(request, response, next, config as Options)
  return false
}

/** The events of a response on which its request may stop counting; false if they do not matter. */
interface ResponseOutcome {
  readonly finished: Promise<void> | false
  readonly closed: Promise<void> | false
  readonly failed: Promise<void> | false
}

/** Must be called before anything asynchronous, because these events occur once. */
function responseOutcome(
  { skipFailedRequests, skipSuccessfulRequests }: Configuration,
  response: LimitedResponse,
): ResponseOutcome {
  const event = (name: 'finish' | 'close' | 'error') => new Promise<void>((resolve) => response.once(name, resolve))
  return {
    finished: (skipFailedRequests || skipSuccessfulRequests) && event('finish'),
    closed: skipFailedRequests && event('close'),
    failed: skipFailedRequests && event('error'),
  }
}

/** Removes the hit of a request from its limit if its response does not count. */
function decrementAfter(
  { finished, closed, failed }: ResponseOutcome,
  { store, logger, requestWasSuccessful, skipFailedRequests, skipSuccessfulRequests }: Configuration,
  { key, resetTime }: RateLimitInfo,
  request: unknown,
  response: LimitedResponse,
): void {
  let isDecremented = false
  const decrement = async (): Promise<void> => {
    // After the window, the hit is gone.
    if (isDecremented || (resetTime !== undefined && Date.now() >= resetTime.getTime())) return
    isDecremented = true
    await store.decrement(key)
  }
  const settle = (event: Promise<void> | false, isSkipped: () => boolean | Promise<boolean>): void => {
    if (event === false) return
    event
      .then(async () => {
        const skipped = isSkipped()
        // Without an extra turn where the answer is known, because the process may end after the connection.
        if (skipped instanceof Promise ? await skipped : skipped) await decrement()
      })
      .catch((error) => logger.error(error, 'A request that does not count could not be removed from its limit.'))
  }
  settle(finished, async () =>
    (await requestWasSuccessful(request, response)) ? skipSuccessfulRequests : skipFailedRequests,
  )
  settle(closed, () => !response.writableEnded)
  settle(failed, () => true)
}

async function setHeaders(
  config: Configuration,
  checks: Misconfigurations,
  info: RateLimitInfo,
  request: unknown,
  response: LimitedResponse,
): Promise<void> {
  const { standardHeaders, identifier, windowMs } = config
  if (config.legacyHeaders) setLegacyHeaders(response, info)
  if (standardHeaders === false || !checks.isDraft(standardHeaders)) return
  if (standardHeaders !== 'draft-6') checks.resetTime(info.resetTime)
  const name =
    standardHeaders !== 'draft-8'
      ? ''
      : typeof identifier === 'function'
        ? await identifier(request, response)
        : identifier
  if (!response.headersSent) setDraftHeaders(standardHeaders, response, info, windowMs, name)
}
