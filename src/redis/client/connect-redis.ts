import { isObject } from '../../validation/fields.js'
import type { Kind } from '../../validation/kind.js'
import { anyValue } from '../../validation/kinds.js'
import { checkOptions } from '../../validation/options.js'
import type { RedisConnection } from './connection.js'
import { connectionOf } from './connection-of.js'
import { openRedis } from './open/open-redis.js'
import type { RedisOptions } from './open/target.js'

/** A Redis URI, connection options, or an ioredis or node-redis client. */
export type RedisLocation = string | RedisOptions | object

/**
 * Opens a connection by URI or options, or wraps the client of the caller. `replyMs` is the time that callers wait for a reply.
 */
export function connectRedis(where: RedisLocation, replyMs: number | undefined): RedisConnection {
  if (typeof where === 'string') return openRedis({ uri: where }, { replyMs })
  if (!isAddress(where)) return connectionOf(where)
  checkOptions('Redis connection options', where, addressKinds)
  return openRedis(where, { replyMs })
}

const isAddress = (where: object): where is RedisOptions =>
  isObject(where) && ['uri', 'clusterNodes', 'sentinels'].some((name) => Object.hasOwn(where, name))

/** Rejects unknown names. `redisTarget` checks the values. */
const addressKinds: Readonly<Record<keyof RedisOptions, Kind<unknown>>> = {
  uri: anyValue,
  clusterNodes: anyValue,
  sentinels: anyValue,
  sentinelName: anyValue,
  username: anyValue,
  password: anyValue,
  sentinelUsername: anyValue,
  sentinelPassword: anyValue,
  tls: anyValue,
  connections: anyValue,
}
