import { Redis } from 'ioredis'
import { afterAll } from 'vitest'
import { type RedisServer, startRedis } from './redis-server.js'

/**
 * A server for one test file, stopped after its tests. Tests with the default deadlines need one: scripts that other tests
 * run on the shared server would count against them.
 */
export async function ownRedis(): Promise<RedisServer> {
  const server = await startRedis()
  afterAll(() => server.stop())
  return server
}

/** A client for one test file, disconnected after its tests. */
export function clientOf({ uri }: RedisServer): Redis {
  const client = new Redis(uri)
  afterAll(() => client.disconnect())
  return client
}
