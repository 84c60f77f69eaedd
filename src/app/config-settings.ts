/**
 * Every setting of fluxgate.yaml: what it may be, and what it is when nobody says. The type of the configuration, the
 * names of the environment variables and docs/reference/configuration.md follow from this table.
 */

import { durationForms, durationText, durationTicks } from '../rules/duration.js'
import type { Kind } from '../rules/fields.js'
import { identifier, oneOf, wholeNumber, yesOrNo } from '../rules/kinds.js'
import type { Mistakes } from '../rules/mistakes.js'
import { headerChoice, patternList, proxyList, workerCount } from './config-edge.js'
import { headerName } from './gateway-kinds.js'
import { type RouteDefinition, readRoutes, routesForm } from './gateway-schema.js'
import { nodeForms, parseNode, parseRedisUri, type RedisNode, uriForms } from './open-redis-address.js'
import { maxConnections } from './open-redis-target.js'

export interface Setting<T> {
  readonly kind: Kind<T>
  /** As it would be written in the file; `undefined` if there is none. */
  readonly standard: string | number | boolean | undefined
  /** It may hold a password, so that no message shows what was found. */
  readonly isSecret?: true
  /** A variable that means the same as the one that the place gives. */
  readonly variable?: string
  /** For a value with places of its own; reports their mistakes, and `kind` only describes it. */
  readonly read?: (value: unknown, path: string, mistakes: Mistakes) => T | undefined
}

const setting = <T>(kind: Kind<T>, standard: string | number | boolean): Setting<T> => ({ kind, standard })
const optional = <T>(kind: Kind<T>): Setting<T | undefined> => ({ kind, standard: undefined })
const secret = <T>(kind: Kind<T>): Setting<T | undefined> => ({ ...optional(kind), isSecret: true })

const filledText: Kind<string> = {
  allowed: 'text that is not empty',
  parse: (value) => (typeof value === 'string' && value.trim() !== '' ? value : undefined),
}

const share: Kind<number> = {
  allowed: 'a number above 0, at most 1',
  parse: (value) => (typeof value === 'number' && value > 0 && value <= 1 ? value : undefined),
}

const redisUri: Kind<string> = {
  allowed: uriForms,
  parse: (value) => (parseRedisUri(value) === undefined ? undefined : (value as string)),
}

const keyPrefix: Kind<string> = {
  allowed: '1 to 64 of letters, digits, . _ - :',
  parse: (value) => (typeof value === 'string' && /^[A-Za-z0-9._:-]{1,64}$/.test(value) ? value : undefined),
}

const nodes = (usualPort: number): Kind<readonly RedisNode[]> => ({
  allowed: `a list of ${nodeForms}; or text with commas between them`,
  parse(value) {
    const items: unknown = typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value
    const parsed = Array.isArray(items) ? items.map((item) => parseNode(item, usualPort)) : []
    return parsed.length > 0 && !parsed.includes(undefined) ? (parsed as RedisNode[]) : undefined
  },
})

const dayTicks = 86_400_000_000

/** In milliseconds; the bounds are in ticks. */
const duration = (min: number, max: number): Kind<number> => ({
  allowed: `${durationForms}, from ${min === 0 ? '0s' : durationText(min)} to ${durationText(max)}`,
  parse(value) {
    const ticks = durationTicks(value)
    return ticks !== undefined && ticks >= min && ticks <= max ? ticks / 1_000 : undefined
  },
})

const routes: Setting<readonly RouteDefinition[] | undefined> = {
  kind: { allowed: `${routesForm}; in the environment as JSON`, parse: () => undefined },
  standard: undefined,
  read: readRoutes,
}

const only = <T extends string>(value: T): Kind<T> => ({
  ...oneOf([value]),
  allowed: `${value}, the only one in this version`,
})

const behaviors = oneOf(['ALLOW', 'DENY'] as const, [['REJECT', 'DENY']])

export const settings = {
  gateway: {
    host: setting(filledText, '127.0.0.1'),
    port: setting(wholeNumber(0, 65_535), 8080),
    routes,
    workers: setting(workerCount, 1),
    connectTimeout: setting(duration(1_000, dayTicks), '5s'),
    responseTimeout: setting(duration(1_000, dayTicks), '60s'),
    idleTimeout: setting(duration(0, dayTicks), '5m'),
    maxConnections: setting(wholeNumber(1, 65_535), 1024),
    keepAlive: setting(duration(1_000, dayTicks), '4s'),
    clientKeepAlive: setting(duration(1_000, dayTicks), '75s'),
    maxHeaderSize: setting(wholeNumber(1_024, 1_048_576), 16_384),
    maxUrlLength: setting(wholeNumber(64, 1_048_576), 8192),
    drainTimeout: setting(duration(0, dayTicks), '10s'),
    accessLog: optional(filledText),
  },
  store: {
    type: setting(oneOf(['memory', 'redis'] as const), 'memory'),
    maxKeys: setting(wholeNumber(1, 2 ** 24), 1_000_000),
    uri: { ...secret(redisUri), variable: 'FLUXGATE_REDIS_URI' },
    clusterNodes: optional(nodes(6379)),
    sentinels: optional(nodes(26_379)),
    sentinelName: setting(filledText, 'mymaster'),
    username: optional(filledText),
    password: secret(filledText),
    sentinelUsername: optional(filledText),
    sentinelPassword: secret(filledText),
    tls: setting(yesOrNo, false),
    prefix: setting(keyPrefix, 'fluxgate'),
    timeoutMs: setting(wholeNumber(1, 60_000), 100),
    connections: setting(wholeNumber(1, maxConnections), 1),
    leaseShare: setting(share, 0.1),
    knownRefusals: setting(yesOrNo, true),
  },
  rules: {
    type: setting(only('file'), 'file'),
    path: setting(filledText, './rules.yaml'),
  },
  ratelimit: {
    defaultRuleSetId: optional(identifier),
    filterEnabled: optional(yesOrNo),
    includePatterns: optional(patternList),
    excludePatterns: optional(patternList),
    missingRuleBehavior: setting(behaviors, 'ALLOW'),
    trustedProxies: optional(proxyList),
    clientIpHeader: setting(headerName, 'X-Forwarded-For'),
    ipv6Prefix: setting(wholeNumber(1, 128), 56),
    userIdHeader: setting(headerName, 'X-User-Id'),
    apiKeyHeader: setting(headerName, 'X-API-Key'),
    headers: setting(headerChoice, 'both'),
    onStoreFailure: setting(oneOf(['LOCAL', 'ALLOW', 'DENY'] as const), 'LOCAL'),
    localShare: setting(share, 1),
  },
  reload: {
    strategy: setting(oneOf(['AUTO', 'WATCH', 'POLLING', 'NONE'] as const), 'AUTO'),
    pollingInterval: setting(duration(1_000, 12 * dayTicks), '30s'),
    resetBucketsOnReload: setting(yesOrNo, true),
  },
  waitForRefill: {
    maxWaitTime: setting(duration(0, 366 * dayTicks), '5s'),
    maxConcurrentWaits: setting(wholeNumber(0, 1_000_000), 100),
  },
} as const

type Value<S> = S extends Setting<infer T> ? T : never

/** All settings, filled in. Durations are in milliseconds. */
export type Settings = {
  readonly [S in keyof typeof settings]: {
    readonly [K in keyof (typeof settings)[S]]: Value<(typeof settings)[S][K]>
  }
}

/** Settings that may also stand in an object of their own: `store: { redis: { uri } }` is `store: { type: redis, uri }`. */
export const settingGroups: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  store: { redis: Object.keys(settings.store).filter((name) => name !== 'type' && name !== 'maxKeys') },
}

/** Of sections and of what is in them. */
export const settingNames: ReadonlySet<string> = new Set(
  [settings, settingGroups].flatMap((table) =>
    Object.entries(table).flatMap(([section, members]) => [section, ...Object.keys(members)]),
  ),
)
