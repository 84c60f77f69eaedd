import { Redis } from 'ioredis'
import { afterAll, describe, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { contractAndHistories } from './histories.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

/**
 * With the histories of the other clients and clusters, a full run compares more than 100 000 steps with the models.
 */
const options = { histories: 220, seed: randomSeed(), overrides: true }

describe.each([true, false])('redisStore over ioredis, cached rejections: %s', (cachedRejections) =>
  contractAndHistories(
    it,
    (clock) => redisStore(client, { prefix: freshPrefix(), clock, cachedRejections, timeoutMs: 20_000 }),
    { ...options, seed: options.seed + (cachedRejections ? 0 : 1_000) },
  ),
)
