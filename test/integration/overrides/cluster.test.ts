/** In a cluster, an override is in the slot of the buckets of its key. */
import { Readable } from 'node:stream'
import { Cluster as IoredisCluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bulkOverrides } from '../../../src/bulk.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { hashSlot } from '../../../src/redis/client/hash-slot.js'
import { slotTag } from '../../../src/redis/client/slot-tags.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { overrideContract } from '../../../src/testing/overrides/contract.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { freshPrefix } from '../../servers/shared-redis.js'

let cluster: Cluster
let client: IoredisCluster
beforeAll(async () => {
  cluster = await startCluster()
  client = new IoredisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
})
afterAll(async () => {
  client.disconnect()
  await cluster.stop()
})

describe('overrides on a cluster', () =>
  overrideContract(
    (title, test) =>
      it(title, async () => {
        const clock = manualClock(startMs)
        const store = redisStore(client, { prefix: freshPrefix(), clock, timeoutMs: 20_000 })
        await test(store, clock).finally(() => store.close())
      }),
    randomSeed(),
  ))

it('an import is spread over the slots of its keys', async () => {
  const prefix = freshPrefix()
  const store = redisStore(client, { prefix, timeoutMs: 20_000 })
  const rules = [
    { id: 'keys', limitScope: 'API_KEY' as const, overrides: true, bands: [{ capacity: 2, window: '1h' }] },
  ]
  const gate = await createFluxGate({ rules: { id: 'api', rules }, store })
  try {
    const rule = gate.ruleSets[0]?.rules[0] ?? expect.unreachable()
    const lines = Array.from({ length: 300 }, (_, i) => `key-${i},LIMIT,${100 + i},1m`)
    const input = Readable.from([Buffer.from(['key,action,capacity,window', ...lines].join('\n'))])
    const clusterNodes = cluster.nodes.map(({ host, port }) => ({ host, port }))
    const report = await bulkOverrides({ clusterNodes }, input, { format: 'csv', ruleSetId: 'api', rule, prefix })
    expect(report).toMatchObject({ done: 300, created: 300, failed: 0, isLive: true })
    const limitOf = async (apiKey: string) => (await gate.check({ apiKey }, { peek: true })).limit
    await expect.poll(() => limitOf('key-299')).toBe(399)
    expect(await Promise.all(['key-0', 'key-1', 'other'].map(limitOf))).toEqual([100, 101, 2])
  } finally {
    await gate.close()
    await store.close()
  }
})

it('every slot has its own tag', () => {
  for (const slot of [0, 1, 4_711, 16_383]) expect(hashSlot(`x:{${slotTag(slot)}}:y`)).toBe(slot)
})
