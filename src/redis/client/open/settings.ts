import type { ConnectionOptions } from 'node:tls'
import type { ClusterOptions, RedisOptions as IoredisOptions } from 'ioredis'
import type { RedisTarget } from './target.js'

const connectTimeoutMs = 1_000
/** How long a connection may be silent before it is pinged, and then again before it is given up. Longer than any caller waits. */
export const silenceMs = (replyMs: number): number => Math.max(connectTimeoutMs / 2, replyMs)
const slowestRetryMs = 250

/** Before the n-th attempt in a row: the first is made at once. A server that rejects our credentials is asked less often. */
export const retryDelayMs = (attempt: number, isRefused: boolean): number =>
  isRefused ? 1_000 : Math.min((attempt - 1) * 25, slowestRetryMs)

/**
 * A command is sent once: if its reply is lost, nobody knows whether it has been done, and doing it twice would charge
 * twice. So ioredis neither repeats commands nor keeps them for later, and connecting again is quick.
 */
const sentOnce = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: connectTimeoutMs,
  disconnectTimeout: 50,
  keepAlive: 5_000,
  connectionName: 'fluxgate',
  disableClientInfo: true,
  // INFO is not always allowed; a server that is loading says so in its replies.
  enableReadyCheck: false,
  // The server has become a replica: another one is the primary now.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies IoredisOptions

type RetryDelay = (attempt: number) => number

export function serverOptions(target: RedisTarget & { kind: 'server' | 'sentinels' }, retry: RetryDelay) {
  const common = {
    ...sentOnce,
    ...accessOf(target),
    enableOfflineQueue: false,
    retryStrategy: retry,
  }
  if (target.kind === 'server') return { ...common, ...target.node, db: target.database } satisfies IoredisOptions
  const { sentinelUsername, sentinelPassword, tls } = target
  return {
    ...common,
    sentinels: target.nodes.map((node) => ({ ...node })),
    name: target.name,
    // The role of the server is in INFO.
    enableReadyCheck: true,
    maxLoadingRetryTime: slowestRetryMs,
    sentinelCommandTimeout: connectTimeoutMs / 2,
    sentinelRetryStrategy: retry,
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
  } satisfies IoredisOptions
}

export function clusterOptions(target: RedisTarget & { kind: 'cluster' }, retry: RetryDelay) {
  return {
    redisOptions: { ...sentOnce, ...accessOf(target) },
    clusterRetryStrategy: retry,
    // ioredis would repeat commands whose connection was closed, sent or not.
    retryDelayOnFailover: 0,
    // These two were not done, and may be soon.
    retryDelayOnClusterDown: 30,
    retryDelayOnTryAgain: 5,
    maxRedirections: 5,
    slotsRefreshTimeout: connectTimeoutMs / 2,
    scaleReads: 'master',
    // Certificates are for names, so names have to stay.
    ...(target.tls && { dnsLookup: (address, callback) => callback(null, address) }),
  } satisfies ClusterOptions
}

interface Access {
  readonly username?: string
  readonly password?: string
  readonly tls?: ConnectionOptions
}

function accessOf({ username, password, tls }: RedisTarget): Access {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls !== undefined && { tls }),
  }
}
