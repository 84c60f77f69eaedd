/** Fixtures for tests of requests that leave while they wait. They use a real clock. */
import { onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { systemClock } from '../../../src/core/clock.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

export const dayMs = 86_400_000
export const minuteMs = 60_000

export const stores: Readonly<Record<string, () => BucketStore>> = {
  memory: () => memoryStore(),
  'memory a day ahead of the local clock': () => memoryStore({ clock: { now: () => systemClock.now() + dayMs } }),
  Redis: () => {
    const store = redisStore(sharedRedis().uri, { prefix: freshPrefix(), timeoutMs: 10_000 })
    onTestFinished(() => store.close())
    return store
  },
}

/** Selects the request that leaves next, as a fraction of the number of waiting requests. */
export const orders: Readonly<Record<string, (random: () => number) => number>> = {
  'oldest first': () => 0,
  'newest first': () => 0.999_999,
  'random order': (random) => random(),
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export async function leaveAll(
  leave: readonly (() => void)[],
  next: () => number,
  pause?: () => Promise<unknown>,
): Promise<void> {
  const left = [...leave]
  while (left.length > 0) {
    left.splice(Math.floor(next() * left.length), 1)[0]?.()
    await pause?.()
  }
}

/**
 * Returns the state as soon as it is the expected one, because refunds are sent in the background. Returns the actual
 * state after 30 s.
 */
export async function settledState<State>(read: () => Promise<State>, expected: State): Promise<State> {
  const text = JSON.stringify(expected)
  await eventually('the expected state', async () => JSON.stringify(await read()) === text, 30_000).catch(() => {})
  return read()
}
