import type { RedisConnection } from '../redis/connection.js'
import { connectionOf } from '../redis/connection-of.js'
import { isObject } from '../rules/fields.js'
import { checkAddressNames } from './check-redis-store.js'
import { openRedis } from './open-redis.js'
import type { RedisOptions } from './open-redis-target.js'

/** A Redis URI, connection options, or an ioredis or node-redis client. */
export type RedisPlace = string | RedisOptions | object

/**
 * Opens a connection by URI or options, or wraps the client of the caller. `replyMs` is the time that callers wait for a reply.
 */
export function connectRedis(where: RedisPlace, replyMs: number | undefined): RedisConnection {
  if (typeof where === 'string') return openRedis({ uri: where }, { replyMs })
  if (!isAddress(where)) return connectionOf(where)
  checkAddressNames(where)
  return openRedis(where, { replyMs })
}

const isAddress = (where: object): where is RedisOptions =>
  isObject(where) && ['uri', 'clusterNodes', 'sentinels'].some((name) => Object.hasOwn(where, name))
