/** Connections to cluster nodes are lost and restored independently of each other and of decisions. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Cluster as ClusterClient, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { hashSlot } from '../../../src/redis/client/hash-slot.js'
import { prepareClusterNode } from '../../../src/redis/client/open/cluster-node.js'
import { type OpenedRedis, openRedis } from '../../../src/redis/client/open/open-redis.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import type { RedisServer } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'

let cluster: Cluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

/** One key in the slots of each primary. */
const keys = ['a', 'b', 'c'] as const

const where = () => ({ clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) })
const primaries = (): Promise<RedisServer[]> => Promise.all(keys.map((key) => cluster.primaryOf(hashSlot(key))))
const killOn = (server: RedisServer) => server.call('CLIENT', 'KILL', 'TYPE', 'normal')
const isConnectedTo = async (server: RedisServer): Promise<boolean> =>
  / name=fluxgate /.test(String(await server.call('CLIENT', 'LIST')))

async function connectedToAll(): Promise<void> {
  const servers = await primaries()
  await eventually('every primary is connected', async () =>
    (await Promise.all(servers.map(isConnectedTo))).every(Boolean),
  )
}

describe('after all primaries have closed their connections', () => {
  it('connections are restored without a decision, and the first decision on each primary is exact', async () => {
    const store = redisStore(where(), { prefix: freshPrefix(), cachedRejections: false })
    onTestFinished(() => store.close())
    const limiter = createLimiter({ algorithm: 'FIXED_WINDOW', capacity: 1_000, window: '366d', store })
    for (const key of keys) await limiter.consume(key)
    const servers = await primaries()
    for (let round = 0; round < 10; round++) {
      await Promise.all(servers.map(killOn))
      await connectedToAll()
      const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
      expect(decisions.map(({ degraded, remaining }) => ({ degraded, remaining }))).toEqual(
        keys.map(() => ({ degraded: false, remaining: 998 - round })),
      )
    }
  })

  it('commands that find a closed socket are sent once, on the new connection', async () => {
    const { connection, client } = await opened()
    const prefix = freshPrefix()
    const servers = await primaries()
    const sent: Promise<unknown>[] = []
    for (const [index, key] of keys.entries()) {
      const node = client.nodes('master').find(({ options }) => options.port === servers[index]?.port) as Redis
      const { stream } = node as unknown as { readonly stream: NodeJS.ReadableStream }
      // The socket is no longer writable, and its 'close' event is emitted in the next turn.
      stream.once('end', () =>
        setImmediate(() => {
          expect(node.status).toBe('ready')
          sent.push(connection.call(key, ['INCR', `${prefix}{${key}}`]))
        }),
      )
    }
    await Promise.all(servers.map(killOn))
    await eventually('all connections were closed', () => sent.length === keys.length)
    expect(await Promise.all(sent)).toEqual([1, 1, 1])
  })
})

/** Includes the client of the connection. */
async function opened(): Promise<{ connection: OpenedRedis; client: ClusterClient }> {
  const clients: ClusterClient[] = []
  const Observed = new Proxy(ClusterClient, {
    construct(target, parameters) {
      const client = Reflect.construct(target, parameters)
      clients.push(client)
      return client
    },
  })
  const connection = openRedis(where(), { load: async () => ({ Redis, Cluster: Observed }) })
  onTestFinished(() => connection.close())
  await connection.ready(60_000)
  const client = clients[0] as ClusterClient
  await eventually('all primaries are connected', () =>
    client.nodes('master').every(({ status }) => status === 'ready'),
  )
  return { connection, client }
}

describe('a prepared node', () => {
  it('that is a replica redirects a writing script to its primary', async () => {
    const [key] = keys
    const primary = await cluster.primaryOf(hashSlot(key))
    const replica = cluster.nodes[cluster.nodes.indexOf(primary) + 3] as RedisServer
    const { host, port } = replica
    const node = new Redis({ host, port, readOnly: true, lazyConnect: true })
    onTestFinished(() => node.disconnect())
    prepareClusterNode(node, () => {})
    const reply = node.eval(`return redis.call('SET', KEYS[1], '1')`, 1, `${freshPrefix()}{${key}}`)
    await expect(reply).rejects.toThrow(`MOVED ${hashSlot(key)} ${primary.host}:${primary.port}`)
  })

  it('that loses its connection before the reply to ASKING causes no unhandled rejection', async () => {
    const server = createServer((socket) => {
      socket.on('data', (bytes) => (String(bytes).includes('asking') ? socket.destroy() : socket.write('+OK\r\n')))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const settings = { protocol: 2, disableClientInfo: true, enableReadyCheck: false, maxRetriesPerRequest: 0 } as const
    const node = new Redis({ port, lazyConnect: true, ...settings })
    onTestFinished(() => node.disconnect())
    const closed = new Promise<void>((resolve) => prepareClusterNode(node, resolve))
    await once(node, 'ready')
    const unhandled: unknown[] = []
    const listener = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', listener)
    onTestFinished(() => void process.off('unhandledRejection', listener))
    void node.asking()
    await closed
    await new Promise(setImmediate)
    expect(unhandled).toEqual([])
  })
})
