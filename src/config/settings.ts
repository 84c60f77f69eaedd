/**
 * All settings of fluxgate.yaml with their kinds and defaults. The type of the configuration, the environment variables and
 * docs/reference/configuration.md are derived from this table.
 */

import { routesKind } from '../gateway/routes/route-schema.js'
import { headerChoice, headerName, patternList, trustedProxies, workerCount } from '../http/option-kinds.js'
import { redisNames, storeSettings } from '../stores/redis/settings.js'
import {
  boolean,
  dayTicks,
  duration,
  identifier,
  keyPrefix,
  nonEmptyText,
  oneOf,
  share,
  token,
  wholeNumber,
} from '../validation/kinds.js'
import { optional, optionalSecret, type Setting, setting } from '../validation/setting.js'
import { rulesUri } from './kinds.js'

const behaviors = oneOf(['ALLOW', 'DENY'] as const, [['REJECT', 'DENY']])

export const settings = {
  server: {
    host: setting(nonEmptyText, '127.0.0.1'),
    port: setting(wholeNumber(0, 65_535), 8090),
    adminToken: { ...optionalSecret(token), variable: 'FLUXGATE_ADMIN_TOKEN' },
    checkToken: { ...optionalSecret(token), variable: 'FLUXGATE_CHECK_TOKEN' },
    tlsCert: optional(nonEmptyText),
    tlsKey: optional(nonEmptyText),
    workers: setting(workerCount, 1),
    revealKeys: setting(boolean, false),
    drainTimeout: setting(duration(0, dayTicks), '10s'),
    grpcPort: optional(wholeNumber(0, 65_535)),
    grpcHost: optional(nonEmptyText),
    grpcAuthentication: setting(oneOf(['TOKEN', 'NONE'] as const), 'TOKEN'),
    grpcMaxConnectionAge: setting(duration(0, 366 * dayTicks), '1h'),
  },
  gateway: {
    host: setting(nonEmptyText, '127.0.0.1'),
    port: setting(wholeNumber(0, 65_535), 8080),
    tlsCert: optional(nonEmptyText),
    tlsKey: optional(nonEmptyText),
    routes: optional(routesKind),
    workers: setting(workerCount, 1),
    connectTimeout: setting(duration(1_000, dayTicks), '5s'),
    responseTimeout: setting(duration(1_000, dayTicks), '60s'),
    idleTimeout: setting(duration(0, dayTicks), '5m'),
    maxConnections: setting(wholeNumber(1, 65_535), 1024),
    clientShare: setting(share, 0.5),
    minUploadRate: setting(wholeNumber(0, 1_000_000_000), 240),
    uploadGracePeriod: setting(duration(1_000, dayTicks), '10s'),
    keepAlive: setting(duration(1_000, dayTicks), '4s'),
    clientKeepAlive: setting(duration(1_000, dayTicks), '75s'),
    maxHeaderSize: setting(wholeNumber(1_024, 1_048_576), 16_384),
    maxUrlLength: setting(wholeNumber(64, 1_048_576), 8192),
    drainTimeout: setting(duration(0, dayTicks), '10s'),
    accessLog: optional(nonEmptyText),
    metricsHost: setting(nonEmptyText, '127.0.0.1'),
    metricsPort: optional(wholeNumber(0, 65_535)),
  },
  store: storeSettings,
  rules: {
    type: setting(oneOf(['file', 'redis', 'mongo'] as const), 'file'),
    path: setting(nonEmptyText, './rules.yaml'),
    uri: { ...optionalSecret(rulesUri), variable: 'FLUXGATE_MONGO_URI' },
    prefix: optional(keyPrefix),
    database: optional(keyPrefix),
    collection: setting(keyPrefix, 'rate_limit_rules'),
  },
  ratelimit: {
    defaultRuleSetId: optional(identifier),
    filterEnabled: optional(boolean),
    includePatterns: optional(patternList),
    excludePatterns: optional(patternList),
    missingRuleBehavior: setting(behaviors, 'ALLOW'),
    trustedProxies: optional(trustedProxies),
    clientIpHeader: setting(headerName, 'X-Forwarded-For'),
    ipv6Prefix: setting(wholeNumber(1, 128), 56),
    userIdHeader: optional(headerName),
    apiKeyHeader: optional(headerName),
    headers: setting(headerChoice, 'both'),
    onStoreFailure: setting(oneOf(['LOCAL', 'ALLOW', 'DENY'] as const), 'LOCAL'),
    localShare: setting(share, 1),
  },
  reload: {
    strategy: setting(oneOf(['AUTO', 'WATCH', 'PUBSUB', 'POLLING', 'NONE'] as const), 'AUTO'),
    pollingInterval: setting(duration(1_000, 12 * dayTicks), '30s'),
    resetBucketsOnReload: setting(boolean, true),
    channel: setting(nonEmptyText, 'fluxgate:rule-reload'),
  },
  waitForRefill: {
    maxWaitTime: setting(duration(0, 366 * dayTicks), '5s'),
    maxConcurrentWaits: setting(wholeNumber(0, 1_000_000), 100),
  },
  log: {
    level: setting(oneOf(['debug', 'info', 'warn', 'error'] as const), 'info'),
    format: setting(oneOf(['auto', 'json', 'text'] as const), 'auto'),
  },
} as const

type Value<S> = S extends Setting<infer T> ? T : never

/** All settings with defaults applied. Durations are in milliseconds. */
export type Settings = {
  readonly [S in keyof typeof settings]: {
    readonly [K in keyof (typeof settings)[S]]: Value<(typeof settings)[S][K]>
  }
}

const named = (names: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [name, name]))

/**
 * Settings that may also be grouped in a nested object, by their name in it: `store: { redis: { uri } }` is the same as
 * `store: { type: redis, uri }`, and `server: { tls: { cert } }` the same as `server: { tlsCert }`.
 */
export const settingGroups: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  server: {
    tls: { cert: 'tlsCert', key: 'tlsKey' },
    grpc: {
      port: 'grpcPort',
      host: 'grpcHost',
      authentication: 'grpcAuthentication',
      maxConnectionAge: 'grpcMaxConnectionAge',
    },
  },
  gateway: { tls: { cert: 'tlsCert', key: 'tlsKey' } },
  store: { redis: named(redisNames) },
  rules: {
    file: named(['path']),
    redis: named(['uri', 'prefix']),
    mongo: named(['uri', 'database', 'collection']),
  },
}

/** Names of all sections, groups and settings. */
export const settingNames: ReadonlySet<string> = new Set([
  ...Object.entries(settings).flatMap(([section, members]) => [section, ...Object.keys(members)]),
  ...Object.values(settingGroups).flatMap((groups) =>
    Object.entries(groups).flatMap(([name, members]) => [name, ...Object.keys(members)]),
  ),
])
