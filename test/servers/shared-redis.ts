/**
 * The Redis server that all tests of a run share. Each test uses its own prefix, and none flushes, pauses or configures
 * the server: a test that needs to starts its own with `startRedis`.
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
