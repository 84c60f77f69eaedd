import { FluxGateError } from '../../core/errors.js'
import type { RedisConnection } from './connection.js'
import { ioredisConnection, isIoredis } from './ioredis-connection.js'
import { isNodeRedis, nodeRedisConnection } from './node-redis-connection.js'

export const isRedisClient = (client: unknown): boolean =>
  typeof client === 'object' && client !== null && (isIoredis(client) || isNodeRedis(client))

/**
 * A caller's client, recognised by what it can do. Neither library is imported: which one there is, and which copy of
 * it, is the caller's affair.
 */
export function connectionOf(client: unknown): RedisConnection {
  if (typeof client === 'object' && client !== null) {
    if (isIoredis(client)) return ioredisConnection(client)
    if (isNodeRedis(client)) return nodeRedisConnection(client)
  }
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `client: found ${kindOf(client)}; allowed: a Redis or Cluster of ioredis, or a client, pool, cluster or sentinel of redis (node-redis); or where Redis is, such as redis://127.0.0.1:6379.`,
  )
}

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : `a ${typeof value}`
  if ('then' in value) return 'a promise, which has to be awaited first'
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== '' && name !== 'Object' ? `an object of class ${name}` : 'an object'
}
