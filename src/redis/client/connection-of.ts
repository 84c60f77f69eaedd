import { FluxGateError } from '../../core/errors.js'
import type { RedisConnection } from './connection.js'
import { ioredisConnection, isIoredis } from './ioredis-connection.js'
import { isNodeRedis, nodeRedisConnection } from './node-redis-connection.js'

export const isRedisClient = (client: unknown): boolean =>
  typeof client === 'object' && client !== null && (isIoredis(client) || isNodeRedis(client))

/**
 * Wraps a caller's client. The client library is detected by its methods and never imported, so any installed copy and
 * version works.
 */
export function connectionOf(client: unknown): RedisConnection {
  if (typeof client === 'object' && client !== null) {
    if (isIoredis(client)) return ioredisConnection(client)
    if (isNodeRedis(client)) return nodeRedisConnection(client)
  }
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `client must be an ioredis Redis or Cluster, a node-redis client, pool, cluster or sentinel, or a URI such as redis://127.0.0.1:6379; received ${typeName(client)}.`,
  )
}

function typeName(value: unknown): string {
  if (value === undefined || value === null) return `${value}`
  if (typeof value !== 'object') return `a ${typeof value}`
  if ('then' in value) return 'a promise; await it first'
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== '' && name !== 'Object' ? `an object of class ${name}` : 'an object'
}
