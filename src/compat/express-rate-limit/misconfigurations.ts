import { canonicalIp } from '../../core/keys/ip-address.js'
import type { LimitedRequest, Options, Store } from './options.js'

const names = [
  'windowMs',
  'limit',
  'message',
  'statusCode',
  'legacyHeaders',
  'standardHeaders',
  'identifier',
  'retryAfter',
  'requestPropertyName',
  'skipFailedRequests',
  'skipSuccessfulRequests',
  'keyGenerator',
  'ipv6Subnet',
  'handler',
  'skip',
  'requestWasSuccessful',
  'store',
  'validate',
  'headers',
  'max',
  'passOnStoreError',
  'logger',
]
/** Options of express-slow-down, which passes them on. */
const ignoredNames = ['delayAfter', 'delayMs', 'maxDelayMs']
const drafts = ['draft-6', 'draft-7', 'draft-8']

/** The codes of express-rate-limit, which applications may search for in their logs, by the name of the check. */
const codes = {
  knownOptions: 'ERR_ERL_UNKNOWN_OPTION',
  windowMs: 'ERR_ERL_WINDOW_MS',
  ipv6Subnet: 'ERR_ERL_IPV6_SUBNET',
  ipv6SubnetOrKeyGenerator: 'ERR_ERL_IPV6SUBNET_OR_KEYGENERATOR',
  keyGeneratorIpFallback: 'ERR_ERL_KEY_GEN_IPV6',
  unsharedStore: 'ERR_ERL_STORE_REUSE',
  ip: 'ERR_ERL_UNDEFINED_IP_ADDRESS',
  limit: 'WRN_ERL_MAX_ZERO',
  creationStack: 'ERR_ERL_CREATED_IN_REQUEST_HANDLER',
  validationsConfig: 'ERR_ERL_UNKNOWN_VALIDATION',
  headersResetTime: 'ERR_ERL_HEADERS_NO_RESET',
  trustProxy: 'ERR_ERL_PERMISSIVE_TRUST_PROXY',
  xForwardedForHeader: 'ERR_ERL_UNEXPECTED_X_FORWARDED_FOR',
  forwardedHeader: 'ERR_ERL_FORWARDED_HEADER',
  positiveHits: 'ERR_ERL_INVALID_HITS',
  singleCount: 'ERR_ERL_DOUBLE_COUNT',
  headersDraftVersion: 'ERR_ERL_HEADERS_UNSUPPORTED_DRAFT_VERSION',
} as const

/** Stores of all limits. A store that two limits share counts requests twice. */
const usedStores = new WeakSet<Store>()

/** The keys that were counted for a request, by store. */
const countedKeys = new WeakMap<object, Map<unknown, Set<string>>>()

/**
 * Reports likely misconfigurations to the logger, each kind once per limit, as express-rate-limit does. `validate` turns kinds off
 * by their name in express-rate-limit.
 */
export class Misconfigurations {
  readonly #enabled: Readonly<Record<string, boolean>>
  readonly #logger: Options['logger']
  readonly #checked = new Set<string>()

  constructor(validate: Options['validate'], logger: Options['logger']) {
    this.#enabled = typeof validate === 'boolean' ? { default: validate } : { default: true, ...validate }
    this.#logger = logger
  }

  options(options: Partial<Options>): void {
    const { ipv6Subnet, keyGenerator, windowMs, store } = options
    const checks = Object.keys(this.#enabled).filter((name) => name !== 'default' && !Object.hasOwn(codes, name))
    this.#check('validationsConfig', checks.length > 0, `validate has the unknown check ${checks.join(', ')}.`)
    const unknown = Object.keys(options).filter((name) => !names.includes(name) && !ignoredNames.includes(name))
    this.#check('knownOptions', unknown.length > 0, `Unknown option ${unknown.join(', ')}. Known: ${names.join(', ')}.`)
    this.#check(
      'windowMs',
      store === undefined && windowMs !== undefined && !(Number.isFinite(windowMs) && windowMs >= 1),
      `windowMs must be a number of milliseconds of at least 1; received ${String(windowMs)}.`,
    )
    this.#check(
      'ipv6Subnet',
      typeof ipv6Subnet === 'number' && !(Number.isInteger(ipv6Subnet) && ipv6Subnet >= 32 && ipv6Subnet <= 64),
      `ipv6Subnet must be an integer from 32 to 64, or false; received ${String(ipv6Subnet)}.`,
    )
    this.#check(
      'ipv6SubnetOrKeyGenerator',
      ipv6Subnet !== undefined && keyGenerator !== undefined,
      'ipv6Subnet has no effect with keyGenerator. Call ipKeyGenerator(ip, ipv6Subnet) in keyGenerator.',
    )
    const source = keyGenerator?.toString() ?? ''
    this.#check(
      'keyGeneratorIpFallback',
      /\breq(uest)?\.ip\b/.test(source) && !source.includes('ipKeyGenerator'),
      'keyGenerator uses the IP address of the request as it is, so an IPv6 client can use many keys. Call ipKeyGenerator(ip).',
    )
  }

  /** Express 4 and 5 call handlers from these methods of a layer. */
  creation(): void {
    this.#check(
      'creationStack',
      /Layer\.handle(?:Request| \[as handle_request\])/.test(new Error().stack ?? ''),
      'The limit was created while a request was handled, so it counts this request only. Create it once, at startup.',
    )
  }

  unsharedStore(store: Store): void {
    this.#check('unsharedStore', usedStores.has(store), 'Two limits share a store. Create a store for each limit.')
    usedStores.add(store)
  }

  request({ ip, headers, app, socket }: LimitedRequest): void {
    const trust = app?.get('trust proxy')
    this.#check('ip', ip === undefined, 'request.ip is undefined. Set keyGenerator.')
    this.#check(
      'ip',
      ip !== undefined && canonicalIp(ip) === undefined,
      `request.ip is not an IP address; received ${JSON.stringify(ip)}. Set keyGenerator.`,
      'ERR_ERL_INVALID_IP_ADDRESS',
    )
    this.#check(
      'trustProxy',
      trust === true,
      'trust proxy is true, so clients can choose their IP address. Set the number of proxies or their addresses.',
    )
    this.#check(
      'xForwardedForHeader',
      headers?.['x-forwarded-for'] !== undefined && trust === false,
      'X-Forwarded-For is set, but trust proxy is false: clients behind a proxy share a limit. Set trust proxy.',
    )
    this.#check(
      'forwardedHeader',
      headers?.forwarded !== undefined && ip === socket?.remoteAddress,
      'Express ignores the header Forwarded. Set keyGenerator to use it.',
    )
  }

  hits(hits: unknown): void {
    const isValid = Number.isInteger(hits) && (hits as number) >= 1
    this.#check(
      'positiveHits',
      !isValid,
      `The store must return a positive integer as totalHits; received ${String(hits)}.`,
    )
  }

  counted(request: object, store: Store, key: string): void {
    const stores = countedKeys.get(request) ?? new Map<unknown, Set<string>>()
    const place = store.localKeys ? store : store.constructor.name
    const keys = stores.get(place) ?? new Set()
    const whole = `${store.prefix ?? ''}${key}`
    this.#check('singleCount', keys.has(whole), `The request was counted twice for the key ${JSON.stringify(key)}.`)
    countedKeys.set(request, stores.set(place, keys.add(whole)))
  }

  limit(limit: number): void {
    this.#check('limit', limit === 0, 'limit is 0, which rejects all requests. Use skip to turn the limit off.')
  }

  resetTime(resetTime: Date | undefined): void {
    this.#check(
      'headersResetTime',
      resetTime === undefined,
      'The store returned no resetTime, so the headers contain the length of the window instead.',
    )
  }

  isDraft(version: string): boolean {
    const isKnown = drafts.includes(version)
    this.#check(
      'headersDraftVersion',
      !isKnown,
      `standardHeaders must be one of ${drafts.join(', ')}; received ${version}.`,
    )
    return isKnown
  }

  #check(name: keyof typeof codes, isWrong: boolean, message: string, code: string = codes[name]): void {
    if (!isWrong || !(this.#enabled[name] ?? this.#enabled.default) || this.#checked.has(name)) return
    this.#checked.add(name)
    const error = Object.assign(new Error(`rateLimit (${name}): ${message}`), { code })
    if (code.startsWith('WRN_')) this.#logger.warn(error)
    else this.#logger.error(error)
  }
}
