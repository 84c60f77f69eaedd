/** Health of a gate whose buckets are on a cluster: an outage of any single node is an outage. */
import { Cluster as IoredisCluster } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'

const rules = { id: 'api', rules: [{ id: 'rule', bands: [{ capacity: 10, window: '1h' }] }] } as const
const timeoutMs = 500

describe('a cluster', () => {
  let cluster: Cluster
  beforeAll(async () => {
    // No node is declared dead while it hangs, so none is replaced.
    cluster = await startCluster({ nodeTimeoutMs: 60_000 })
  })
  afterAll(() => cluster.stop())

  const addresses = () => cluster.nodes.map(({ host, port }) => ({ host, port }))

  const stores: readonly [string, () => FluxGateOptions['store'] | Promise<FluxGateOptions['store']>][] = [
    ['addresses', () => ({ clusterNodes: addresses().map(({ host, port }) => `${host}:${port}`), timeoutMs })],
    [
      'an ioredis client',
      () => {
        const client = new IoredisCluster(addresses())
        client.on('error', () => {})
        onTestFinished(() => client.disconnect())
        return redisStore(client, { timeoutMs })
      },
    ],
    [
      'a node-redis client',
      async () => {
        const rootNodes = addresses().map(({ host, port }) => ({ url: `redis://${host}:${port}` }))
        const client = createCluster({ rootNodes })
        client.on('error', () => {})
        await client.connect()
        onTestFinished(() => client.destroy())
        return redisStore(client, { timeoutMs })
      },
    ],
  ]

  it.each(stores)(
    'through %s is down while any one of its primaries hangs, without traffic',
    async (_, open) => {
      const store = await open()
      const gate = await createFluxGate({ rules, ...(store && { store }) })
      onTestFinished(() => gate.close())
      const becomes = (status: string) =>
        eventually(
          `the store is ${status}`,
          async () => {
            const { store } = await gate.health()
            return store.status === status && store
          },
          30_000,
        )
      await becomes('UP')
      for (const slot of [0, 8_000, 16_000]) {
        const node = await cluster.primaryOf(slot)
        node.pause()
        try {
          expect((await becomes('DOWN')).error).toEqual(expect.any(String))
        } finally {
          node.resume()
        }
        expect((await becomes('UP')).error).toBeNull()
      }
    },
    120_000,
  )
})
