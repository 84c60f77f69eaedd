/** Rules in a cluster, where all keys that a script touches must share a slot. */
import { createCluster } from 'redis'
import { createCluster as createCluster4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisRuleStore } from '../../../src/rules/redis/redis-rule-store.js'
import { ruleStoreContract } from '../../../src/testing/index.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { freshPrefix } from '../../servers/shared-redis.js'

let cluster: Cluster
let nodeRedis: ReturnType<typeof createCluster>
let nodeRedis4: ReturnType<typeof createCluster4>
beforeAll(async () => {
  cluster = await startCluster()
  const rootNodes = cluster.nodes.map(({ uri }) => ({ url: uri }))
  nodeRedis = createCluster({ rootNodes })
  nodeRedis4 = createCluster4({ rootNodes })
  for (const client of [nodeRedis, nodeRedis4]) {
    client.on('error', () => {})
    await client.connect()
  }
})
afterAll(async () => {
  nodeRedis.destroy()
  await nodeRedis4.disconnect()
  await cluster.stop()
})

const ways: Readonly<Record<string, () => object>> = {
  addresses: () => ({ clusterNodes: cluster.nodes.map(({ host, port }) => ({ host, port })) }),
  'a client of node-redis': () => nodeRedis,
  'a client of node-redis 4': () => nodeRedis4,
}

describe.each(Object.entries(ways))('a rule store on a cluster, by %s', (_, where) => {
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
