import type { ConnectionOptions } from 'node:tls'
import type { ClusterOptions, RedisOptions as IoredisOptions } from 'ioredis'
import type { RedisTarget } from './target.js'

const connectTimeoutMs = 1_000
/** How long a call may go without a reply before the connection is pinged, and the ping before the connection is dropped. */
export const silenceMs = (replyMs: number): number => Math.max(connectTimeoutMs / 2, replyMs)
const maxRetryDelayMs = 250

/** The delay before the n-th consecutive attempt. The first is immediate. Retries are slower if the server rejects the credentials. */
export const retryDelayMs = (attempt: number, isRefused: boolean): number =>
  isRefused ? 1_000 : Math.min((attempt - 1) * 25, maxRetryDelayMs)

/**
 * Commands are sent at most once: if a reply is lost, the command may have run, and repeating it would charge twice. ioredis
 * therefore neither resends nor queues commands, and reconnects quickly.
 */
const atMostOnce = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: connectTimeoutMs,
  disconnectTimeout: 50,
  keepAlive: 5_000,
  connectionName: 'fluxgate',
  disableClientInfo: true,
  // The ready check needs INFO, which ACLs may forbid. A server that is loading its data reports this in its replies anyway.
  enableReadyCheck: false,
  // The server has become a replica, so another one is the primary now.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies IoredisOptions

type RetryDelay = (attempt: number) => number

export function serverOptions(target: RedisTarget & { kind: 'server' | 'sentinels' }, retry: RetryDelay) {
  const common = {
    ...atMostOnce,
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
    // The ready check reads the role of the server from INFO.
    enableReadyCheck: true,
    maxLoadingRetryTime: maxRetryDelayMs,
    sentinelCommandTimeout: connectTimeoutMs / 2,
    sentinelRetryStrategy: retry,
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
  } satisfies IoredisOptions
}

export function clusterOptions(target: RedisTarget & { kind: 'cluster' }, retry: RetryDelay) {
  return {
    redisOptions: { ...atMostOnce, ...accessOf(target) },
    clusterRetryStrategy: retry,
    // Otherwise ioredis resends commands after a closed connection, even if they may have run.
    retryDelayOnFailover: 0,
    // Commands that fail with CLUSTERDOWN or TRYAGAIN have not run, so they are retried.
    retryDelayOnClusterDown: 30,
    retryDelayOnTryAgain: 5,
    maxRedirections: 5,
    slotsRefreshTimeout: connectTimeoutMs / 2,
    scaleReads: 'master',
    // TLS certificates are issued for host names, so host names must not be resolved to addresses.
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
