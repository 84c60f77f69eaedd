/** Settings of the bucket store. In a module of their own, because middleware needs only these. */
import { nodes, redisUri } from '../../redis/client/open/address-kinds.js'
import { maxConnections } from '../../redis/client/open/target.js'
import { boolean, keyPrefix, nonEmptyText, oneOf, share, wholeNumber } from '../../validation/kinds.js'
import { optional, optionalSecret, setting } from '../../validation/setting.js'

export const storeSettings = {
  type: setting(oneOf(['memory', 'redis'] as const), 'memory'),
  maxKeys: setting(wholeNumber(1, 2 ** 24), 1_000_000),
  maxReservations: setting(wholeNumber(1, 2 ** 24), 200_000),
  uri: { ...optionalSecret(redisUri), variable: 'FLUXGATE_REDIS_URI' },
  clusterNodes: optional(nodes(6379)),
  sentinels: optional(nodes(26_379)),
  sentinelName: setting(nonEmptyText, 'mymaster'),
  username: optional(nonEmptyText),
  password: optionalSecret(nonEmptyText),
  sentinelUsername: optional(nonEmptyText),
  sentinelPassword: optionalSecret(nonEmptyText),
  tls: setting(boolean, false),
  prefix: setting(keyPrefix, 'fluxgate'),
  timeoutMs: setting(wholeNumber(1, 60_000), 100),
  connectTimeoutMs: setting(wholeNumber(0, 600_000), 2_000),
  connections: setting(wholeNumber(1, maxConnections), 1),
  leaseShare: setting(share, 0.1),
  cachedRejections: setting(boolean, true),
  /** Deprecated name of `cachedRejections`. */
  knownRefusals: optional(boolean),
}

const memoryNames: readonly string[] = ['maxKeys', 'maxReservations']

/** Names of the settings for Redis. */
export const redisNames = Object.keys(storeSettings).filter((name) => name !== 'type' && !memoryNames.includes(name))
