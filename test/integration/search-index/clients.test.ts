/** The search index over every way to Redis: clients of both libraries, URIs, a cluster, and Valkey. */
import { Cluster as IoredisCluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { createClient as createClient4, createCluster as createCluster4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashSlot } from '../../../src/redis/client/hash-slot.js'
import { searchIndex } from '../../../src/search-index.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { valkeyBinary } from '../../servers/valkey.js'
import { baseOf, fields, idsOf, type Product, product } from './test-index.js'

/** Uses every script and command of an index, with bytes that are not text. */
async function useEverything(where: string | object): Promise<void> {
  const prefix = freshPrefix()
  const index = searchIndex<Product>(where, { prefix, name: 'products', fields, recent: 2 })
  await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      index.put(
        `제품 ${i}`,
        product(i % 2 ? `한국 ${i}` : `😀 ${i}`, -i, i + 1, { category: 'c', colours: [`tag ${i % 3}`] }),
      ),
    ),
  )
  expect(await index.update('제품 3', (record) => ({ ...record, price: 0.5 }))).toMatchObject({ price: 0.5 })
  expect(await index.insert('제품 3', {})).toBe(false)
  expect(await index.remove('제품 0')).toBe(true)
  expect(await index.get('제품 4')).toMatchObject({ name: '😀 4', price: -4 })
  expect(await idsOf(index, { by: 'price', above: -5, limit: 2 })).toEqual(['제품 4', '제품 2', '제품 1', '제품 3'])
  const last = { by: 'shelf', equals: ['c'], order: 'descending', limit: 3 } as const
  expect((await idsOf(index, last)).slice(0, 3)).toEqual(['제품 3', '제품 1', '제품 2'])
  expect((await index.suggest('words', '한', 2)).map(({ count }) => count)).toEqual([30, 28])
  expect(await index.sample(5, { field: 'colours', tag: 'tag 1' })).toHaveLength(5)
  expect(await index.sample(100)).toHaveLength(29)
  expect((await index.recent())[0]?.id).toBe('제품 3')
  expect((await index.verify()).problems).toEqual([])
  expect(await index.rebuild()).toEqual({ records: 29 })
  expect((await index.verify()).problems).toEqual([])
  expect(await index.count()).toBe(29)
  await index.clear()
  expect(await index.count()).toBe(0)
  await index.close()
}

describe('a search index over one server', () => {
  it('by URI', () => useEverything(sharedRedis().uri))

  it('over several sockets', () => useEverything({ uri: sharedRedis().uri, connections: 3 }))

  it('with a client of ioredis, which stays open', async () => {
    const client = new Redis(sharedRedis().uri)
    await useEverything(client)
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
  })

  it.each([2, 3] as const)('with a client of node-redis that uses RESP%i', async (RESP) => {
    const client = createClient({ url: sharedRedis().uri, RESP })
    await client.connect()
    await useEverything(client)
    await client.close()
  })

  it('with a client of node-redis 4', async () => {
    const client = createClient4({ url: sharedRedis().uri })
    await client.connect()
    await useEverything(client)
    await client.disconnect()
  })
})

describe('a search index with a minimal ACL user', () => {
  it('supports every operation', async () => {
    const server = await stopAfterTest(startRedis())
    // The permissions in docs/guide/search-index.md.
    const rights = '+evalsha +eval +@hash +@sortedset +@set +@list +unlink +del'
    await server.call('ACL', 'SETUSER', 'index', 'on', '>pw', '~test-*', ...rights.split(' '))
    await useEverything(server.uri.replace('redis://', 'redis://index:pw@'))
  })
})

const binary = valkeyBinary()
if (binary === undefined) {
  console.info('Valkey is not tried: there is no valkey-server on the PATH, and FLUXGATE_TEST_VALKEY names none.')
} else {
  it('a search index on Valkey', async () => {
    const server = await stopAfterTest(startRedis({ binary }))
    await useEverything(server.uri)
  })
}

describe('a search index on a cluster', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster.stop())

  it('by some of its nodes', () =>
    useEverything({ clusterNodes: cluster.nodes.map(({ host, port }) => ({ host, port })) }))

  it('with a client of ioredis', async () => {
    const client = new IoredisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
    await useEverything(client)
    client.disconnect()
  })

  it('with a client of node-redis', async () => {
    const client = createCluster({ rootNodes: cluster.nodes.map(({ uri }) => ({ url: uri })) })
    client.on('error', () => {})
    await client.connect()
    await useEverything(client)
    client.destroy()
  })

  it('with a client of node-redis 4', async () => {
    const client = createCluster4({ rootNodes: cluster.nodes.map(({ uri }) => ({ url: uri })) })
    client.on('error', () => {})
    await client.connect()
    await useEverything(client)
    await client.disconnect()
  })

  it('moves to another node with its slot and is consistent there', async () => {
    const prefix = freshPrefix()
    const client = new IoredisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
    const index = searchIndex<Product>(client, { prefix, name: 'products', fields })
    const put = (i: number) => index.put(`p${i}`, product(`x${i}`, i, 1, { colours: ['red'] }))
    for (let i = 0; i < 20; i++) await put(i)
    const slot = hashSlot(baseOf(prefix))
    const from = await cluster.primaryOf(slot)
    const to = await cluster.primaryOf((slot + 8_000) % 16_384)
    expect(to.port).not.toBe(from.port)
    await cluster.moveSlot(slot, to)
    for (let i = 20; i < 40; i++) await put(i)
    expect(await index.verify()).toMatchObject({ isSound: true, records: 40 })
    client.disconnect()
  })
})
