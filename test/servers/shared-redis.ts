/**
 * The server that all tests of a run share. Each isolates itself by a prefix of its own, and none flushes, pauses or
 * configures it: a test that has to do so starts a server with `startRedis`.
 */
import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    sharedRedisPort: number
  }
}

export interface SharedRedis {
  readonly host: string
  readonly port: number
  readonly uri: string
}

export function sharedRedis(): SharedRedis {
  const host = '127.0.0.1'
  const port = inject('sharedRedisPort')
  return { host, port, uri: `redis://${host}:${port}` }
}

export const freshPrefix = (): string => `test-${randomBytes(8).toString('hex')}:`
