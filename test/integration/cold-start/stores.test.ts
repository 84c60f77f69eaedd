/** Decisions made right after the start are exact: they wait for the first connection, however slow the start is. */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { stall } from '../../fixtures/stall.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { ownRedis } from '../../servers/own-redis.js'
import { type SentinelGroup, startSentinel } from '../../servers/sentinel.js'
import { freshPrefix } from '../../servers/shared-redis.js'
import { burnCpu, runWorker } from './workers.js'

const { uri } = await ownRedis()
const capacity = 5
const calls = 10

/** Makes all calls in the turn in which the limiter is created, and then blocks the event loop. */
async function decideAtOnce(store: string | BucketStore, blockMs: number) {
  const limiter = createLimiter({ capacity, window: '30d', store })
  onTestFinished(() => limiter.close())
  const key = freshPrefix()
  const asked = Array.from({ length: calls }, () => limiter.consume(key))
  stall(blockMs)
  const decisions = await Promise.all(asked)
  return {
    allowed: decisions.filter(({ allowed }) => allowed).length,
    degraded: decisions.filter(({ degraded }) => degraded).length,
  }
}

const exact = { allowed: capacity, degraded: 0 }

let sentinels: SentinelGroup
let cluster: Cluster
beforeAll(async () => {
  ;[sentinels, cluster] = await Promise.all([startSentinel(), startCluster()])
})
afterAll(() => Promise.all([sentinels.stop(), cluster.stop()]))

function closedAfterTest<Store extends BucketStore>(store: Store): Store {
  onTestFinished(() => store.close())
  return store
}

function ioredisClient(lazyConnect: boolean): Redis {
  const client = new Redis(uri, { lazyConnect })
  onTestFinished(() => client.disconnect())
  return client
}

/** A client that is connecting but not connected. */
function nodeRedisClient() {
  const client = createClient({ url: uri })
  client.connect().catch(() => {})
  onTestFinished(() => client.destroy())
  return client
}

const stores: readonly (readonly [string, () => string | BucketStore])[] = [
  ['a URI', () => uri],
  ['redisStore by URI', () => closedAfterTest(redisStore(uri, { prefix: freshPrefix() }))],
  [
    'redisStore over four sockets',
    () => closedAfterTest(redisStore({ uri, connections: 4 }, { prefix: freshPrefix() })),
  ],
  ["the caller's ioredis client", () => redisStore(ioredisClient(false), { prefix: freshPrefix() })],
  ["the caller's lazy ioredis client", () => redisStore(ioredisClient(true), { prefix: freshPrefix() })],
  ["the caller's node-redis client", () => redisStore(nodeRedisClient(), { prefix: freshPrefix() })],
  [
    'sentinels',
    () =>
      closedAfterTest(
        redisStore({
          sentinels: sentinels.sentinels.map(({ host, port }) => ({ host, port })),
          sentinelName: sentinels.name,
        }),
      ),
  ],
  [
    'a cluster',
    () => closedAfterTest(redisStore({ clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) })),
  ],
]

describe.each(stores)('a limiter that has just been created on %s', (_, open) => {
  it('allows exactly its capacity, without a degraded decision', async () => {
    expect(await decideAtOnce(open(), 0)).toEqual(exact)
  })

  it('is exact if the event loop is blocked for 500 ms', async () => {
    expect(await decideAtOnce(open(), 500)).toEqual(exact)
  })
})

describe('eight processes that start at once', () => {
  const processes = 8
  async function startAll(kind: string, blockMs: number) {
    const settings = { kind, uri, prefix: freshPrefix(), capacity: 100, calls: 100, blockMs }
    const reports = await Promise.all(
      Array.from({ length: processes }, () => runWorker<{ allowed: number; degraded: number }>('worker.mjs', settings)),
    )
    const sum = (name: 'allowed' | 'degraded') => reports.reduce((total, report) => total + report[name], 0)
    return { allowed: sum('allowed'), degraded: sum('degraded') }
  }

  const longest = { timeout: 120_000 }
  const exactTogether = { allowed: 100, degraded: 0 }

  it.each(['limiter', 'store', 'store and ready', 'gate', 'middleware'])(
    'admit exactly one limit in total: %s',
    longest,
    async (kind) => {
      expect(await startAll(kind, 0)).toEqual(exactTogether)
    },
  )

  it.each(['limiter', 'gate'])(
    'admit exactly one limit if their event loops are blocked for 500 ms: %s',
    longest,
    async (kind) => {
      expect(await startAll(kind, 500)).toEqual(exactTogether)
    },
  )

  it.each(['limiter', 'gate'])('admit exactly one limit alongside two busy loops: %s', longest, async (kind) => {
    burnCpu(2)
    expect(await startAll(kind, 0)).toEqual(exactTogether)
  })
})
