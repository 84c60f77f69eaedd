/**
 * The store contract with the default deadlines: on stores that were just created, and with an event loop that is
 * blocked more than half of the time. Other suites raise `timeoutMs`, so that only their subject can fail.
 */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, it } from 'vitest'
import type { Clock } from '../../../src/core/clock.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { bucketStoreContract } from '../../../src/testing/bucket-store-contract.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { inOneSlot } from '../../fixtures/same-slot.js'
import { stall } from '../../fixtures/stall.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { ownRedis } from '../../servers/own-redis.js'
import { type SentinelGroup, startSentinel } from '../../servers/sentinel.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const { uri } = await ownRedis()
const seed = randomSeed()
const options = (offset: number) => ({ histories: 1, seed: seed + offset })

/** Blocks the event loop for 60 of every 100 ms during the tests of the group. */
function withStalls(): void {
  let timer: NodeJS.Timeout
  beforeAll(() => {
    timer = setInterval(() => stall(60), 100)
  })
  afterAll(() => clearInterval(timer))
}

let sentinels: SentinelGroup
let cluster: Cluster
beforeAll(async () => {
  ;[sentinels, cluster] = await Promise.all([startSentinel(), startCluster()])
})
afterAll(() => Promise.all([sentinels.stop(), cluster.stop()]))

const byUri = (clock: Clock) => redisStore(uri, { prefix: freshPrefix(), clock })

describe('a store by URI, used as soon as it is created', () => bucketStoreContract(it, byUri, options(0)))

describe('a store by URI, used as soon as it is created, in a process that stalls', () => {
  withStalls()
  bucketStoreContract(it, byUri, options(100))
})

describe('a store by sentinels, used as soon as it is created', () =>
  bucketStoreContract(
    it,
    (clock) => {
      const nodes = sentinels.sentinels.map(({ host, port }) => ({ host, port }))
      return redisStore({ sentinels: nodes, sentinelName: sentinels.name }, { prefix: freshPrefix(), clock })
    },
    options(200),
  ))

describe('a store on a cluster, used as soon as it is created', () =>
  bucketStoreContract(
    it,
    (clock) => {
      const clusterNodes = cluster.nodes.map(({ host, port }) => `${host}:${port}`)
      return inOneSlot(redisStore({ clusterNodes }, { prefix: freshPrefix(), clock }))
    },
    options(300),
  ))

describe("a store on the caller's ioredis client, in a process that stalls", () => {
  const client = new Redis(uri, { lazyConnect: true })
  afterAll(() => client.disconnect())
  withStalls()
  bucketStoreContract(it, (clock) => redisStore(client, { prefix: freshPrefix(), clock }), options(400))
})

describe("a store on the caller's node-redis client, in a process that stalls", () => {
  const client = createClient({ url: uri })
  beforeAll(async () => void (await client.connect()))
  afterAll(() => client.destroy())
  withStalls()
  bucketStoreContract(it, (clock) => redisStore(client, { prefix: freshPrefix(), clock }), options(500))
})
