/** On a cluster an override is where the buckets of its identity are. */
import { Cluster as IoredisCluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisStore } from '../../src/app/redis-store.js'
import { hashSlot } from '../../src/redis/hash-slot.js'
import { slotTag } from '../../src/redis/slot-tags.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { overrideContract } from '../../src/testing/override-contract.js'
import { type Cluster, startCluster } from '../servers/cluster.js'
import { freshPrefix } from '../servers/shared-redis.js'
import { randomSeed, startMs } from './buckets.js'

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

it('every slot has a tag of its own', () => {
  for (const slot of [0, 1, 4_711, 16_383]) expect(hashSlot(`x:{${slotTag(slot)}}:y`)).toBe(slot)
})
