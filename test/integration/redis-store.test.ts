import { Redis } from 'ioredis'
import { afterAll, describe, it } from 'vitest'
import { redisStore } from '../../src/app/redis-store.js'
import { bucketStoreContract } from '../../src/testing/bucket-store-contract.js'
import { freshPrefix, sharedRedis } from '../servers/shared-redis.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

describe('redisStore', () =>
  bucketStoreContract(it, (clock) => redisStore(client, { prefix: freshPrefix(), clock }), { histories: 100 }))
describe('redisStore without known refusals', () =>
  bucketStoreContract(it, (clock) => redisStore(client, { prefix: freshPrefix(), clock, knownRefusals: false }), {
    histories: 100,
  }))
