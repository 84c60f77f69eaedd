/** Rules in a cluster, where all keys that a script touches must share a slot. */
import { createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisRuleStore } from '../../src/app/redis-rule-store.js'
import { ruleStoreContract } from '../../src/testing/index.js'
import { type Cluster, startCluster } from '../servers/cluster.js'
import { freshPrefix } from '../servers/shared-redis.js'

let cluster: Cluster
let nodeRedis: ReturnType<typeof createCluster>
beforeAll(async () => {
  cluster = await startCluster()
  nodeRedis = createCluster({ rootNodes: cluster.nodes.map(({ uri }) => ({ url: uri })) })
  nodeRedis.on('error', () => {})
  await nodeRedis.connect()
})
afterAll(async () => {
  nodeRedis.destroy()
  await cluster.stop()
})

describe.each(['addresses', 'a client of node-redis'])('a rule store on a cluster, by %s', (way) => {
  const where = () =>
    way === 'addresses' ? { clusterNodes: cluster.nodes.map(({ host, port }) => ({ host, port })) } : nodeRedis

  ruleStoreContract(
    it,
    (clock) => {
      const prefix = freshPrefix()
      return { open: () => redisRuleStore(where(), { prefix, channel: `${prefix}reload`, clock }) }
    },
    { notices: true, edits: 50 },
  )

  it('finds rules of several prefixes, wherever their slots are', async () => {
    const prefixes = Array.from({ length: 6 }, freshPrefix)
    for (const prefix of prefixes) {
      const store = redisRuleStore(where(), { prefix })
      await store.putRuleSet({ id: 'api', description: prefix, rules: [] }, { by: 'ann' })
      expect((await store.getRuleSet('api'))?.description).toBe(prefix)
      await store.close()
    }
  })
})
