import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisRuleStore } from '../../src/app/redis-rule-store.js'
import { ruleStoreContract } from '../../src/testing/index.js'
import { freshPrefix, sharedRedis } from '../servers/shared-redis.js'
import { checkIndexes } from './rule-indexes.js'

let client: Redis
beforeAll(() => {
  client = new Redis(sharedRedis().uri)
})
afterAll(() => client.disconnect())

describe('a rule store in Redis', () => {
  ruleStoreContract(
    it,
    (clock) => {
      const prefix = freshPrefix()
      return {
        open: () => redisRuleStore(sharedRedis().uri, { prefix, channel: `${prefix}reload`, clock }),
        remove: async () => checkIndexes(client, prefix),
      }
    },
    { notices: true, edits: 500 },
  )
})

describe('a rule store over a client of the caller', () => {
  ruleStoreContract(
    it,
    (clock) => {
      const prefix = freshPrefix()
      return { open: () => redisRuleStore(client, { prefix, channel: `${prefix}reload`, clock }) }
    },
    { notices: true },
  )

  it('leaves it open', async () => {
    await redisRuleStore(client, { prefix: freshPrefix() }).close()
    expect(await client.ping()).toBe('PONG')
  })
})
