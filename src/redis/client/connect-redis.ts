import { configInvalid } from '../../validation/config-invalid.js'
import { isObject, openFields } from '../../validation/fields.js'
import { noIssues } from '../../validation/issues.js'
import type { RedisConnection } from './connection.js'
import { connectionOf } from './connection-of.js'
import { openRedis } from './open/open-redis.js'
import type { RedisOptions } from './open/target.js'

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

const addressNames: Readonly<Record<keyof RedisOptions, true>> = {
  uri: true,
  clusterNodes: true,
  sentinels: true,
  sentinelName: true,
  username: true,
  password: true,
  sentinelUsername: true,
  sentinelPassword: true,
  tls: true,
  connections: true,
}

/** Rejects unknown names. `redisTarget` checks the values. */
function checkAddressNames(address: RedisOptions): void {
  const mistakes = noIssues()
  openFields(address, '', Object.keys(addressNames), 'an object of options', mistakes)
  if (mistakes.count > 0) throw configInvalid('Redis connection options', mistakes.kept)
}
