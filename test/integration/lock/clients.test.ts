/** Locks over every supported client: acquire, wait, guarded writes. */
import { Cluster as IoredisCluster, Redis } from 'ioredis'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { createClient as createClient4, createCluster as createCluster4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { guardedScript } from '../../../src/lock.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { type SentinelGroup, startSentinel } from '../../servers/sentinel.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { openLock } from './test-locks.js'

let cluster: Cluster
let group: SentinelGroup
beforeAll(async () => {
  ;[cluster, group] = await Promise.all([startCluster(), startSentinel()])
})
afterAll(() => Promise.all([cluster.stop(), group.stop()]))

interface NodeRedis {
  on(event: 'error', listener: () => void): unknown
  connect(): unknown
  destroy?(): unknown
  /** Of version 4. */
  disconnect?(): unknown
}
async function connected<T extends NodeRedis>(client: T): Promise<T> {
  client.on('error', () => {})
  await client.connect()
  onTestFinished(async () => void (await (client.destroy ? client.destroy() : client.disconnect?.())))
  return client
}
function ended<T extends Redis | IoredisCluster>(client: T): T {
  onTestFinished(() => client.disconnect())
  return client
}
const nodes = () => cluster.nodes.map(({ host, port }) => ({ host, port }))
const sentinels = () => group.sentinels.map(({ host, port }) => ({ host, port }))

const places: Readonly<Record<string, () => string | object | Promise<object>>> = {
  'a URI': () => sharedRedis().uri,
  'nodes of a cluster': () => ({ clusterNodes: nodes() }),
  sentinels: () => ({ sentinels: sentinels(), sentinelName: group.name }),
  'ioredis Redis': () => ended(new Redis(sharedRedis().port)),
  'ioredis Redis with a prefix and pipelines': () =>
    ended(new Redis({ port: sharedRedis().port, keyPrefix: 'p:', enableAutoPipelining: true })),
  'ioredis Cluster': () => ended(new IoredisCluster(nodes())),
  'node-redis client': () => connected(createClient({ url: sharedRedis().uri })),
  'node-redis pool': () => connected(createClientPool({ url: sharedRedis().uri })),
  'node-redis cluster': () => connected(createCluster({ rootNodes: cluster.nodes.map(({ uri }) => ({ url: uri })) })),
  'node-redis 4 client': () => connected(createClient4({ url: sharedRedis().uri })),
  'node-redis 4 cluster': () =>
    connected(createCluster4({ rootNodes: cluster.nodes.map(({ uri }) => ({ url: uri })) })),
  'node-redis sentinel': () => connected(createSentinel({ name: group.name, sentinelRootNodes: sentinels() })),
}

describe.each(Object.entries(places))('%s', (_, place) => {
  it('acquires, waits for and guards with locks', async () => {
    const where = await place()
    const prefix = freshPrefix()
    const lock = openLock({ prefix, ttlMs: 60_000 }, where)
    const first = await lock.acquire('orders')
    expect(await lock.tryAcquire('orders')).toBeUndefined()
    const inLine = lock.using('orders', { fair: true, waitMs: 30_000 }, (_signal, { fence }) => fence)
    const waiting = lock.acquire('orders', { waitMs: 30_000 })
    const save = guardedScript("return redis.call('SET', KEYS[1], ARGV[1], 'EX', 60)")
    expect(await first.run(save, { keys: [`${prefix}{orders}:total`], args: ['한국'] })).toBe('OK')
    await first.release()
    const second = await waiting
    expect(second.fence).toBeGreaterThan(first.fence)
    await expect(first.run(save, { keys: [`${prefix}{orders}:total`] })).rejects.toMatchObject({
      code: 'FLUXGATE_LOCK_LOST',
    })
    await second.release()
    expect(await inLine).toBeGreaterThan(first.fence)
  })
})
