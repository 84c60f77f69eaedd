/** Redis clients of the caller: every supported kind behaves alike. */
import { Cluster as IoredisCluster, Redis } from 'ioredis'
import { createClient, createClientPool, createCluster, createSentinel, RESP_TYPES } from 'redis'
import { createClient as createClient4, createCluster as createCluster4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { isNoScript, wrapRedisError } from '../../../src/redis/client/errors.js'
import { eventually } from '../../fixtures/eventually.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { type SentinelGroup, startSentinel } from '../../servers/sentinel.js'

let server: RedisServer
let cluster: Cluster
let group: SentinelGroup

beforeAll(async () => {
  ;[server, cluster, group] = await Promise.all([startRedis(), startCluster(), startSentinel()])
})
afterAll(() => Promise.all([server.stop(), cluster.stop(), group.stop()]))

/** A client, and how to close it. */
type Opened = readonly [client: unknown, end: () => unknown]
const nodeRedis = async <
  T extends { on(event: 'error', listener: () => void): unknown; connect(): unknown; destroy(): unknown },
>(
  client: T,
): Promise<Opened> => {
  client.on('error', () => {})
  await client.connect()
  return [client, () => client.destroy()]
}
const nodeRedis4 = async <
  T extends { on(event: 'error', listener: () => void): unknown; connect(): unknown; disconnect(): Promise<unknown> },
>(
  client: T,
): Promise<Opened> => {
  client.on('error', () => {})
  await client.connect()
  return [client, () => client.disconnect()]
}
const ioredis = (client: Redis | IoredisCluster): Opened => [client, () => client.disconnect()]

const strange = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String, [RESP_TYPES.MAP]: Map }
const rootNodes = () => cluster.nodes.map(({ uri }) => ({ url: uri }))
const startNodes = () => cluster.nodes.map(({ host, port }) => ({ host, port }))
const sentinelNodes = () => group.sentinels.map(({ host, port }) => ({ host, port }))

const servers: Readonly<Record<string, () => Opened | Promise<Opened>>> = {
  'ioredis Redis': () => ioredis(new Redis(server.port)),
  'ioredis Redis that connects late, in RESP2': () =>
    ioredis(new Redis({ port: server.port, lazyConnect: true, protocol: 2 })),
  'ioredis Redis with types of RESP3': () => ioredis(new Redis({ port: server.port, replyMapping: 'resp3' })),
  'ioredis Redis with numbers as text, a prefix and pipelines': () =>
    ioredis(new Redis({ port: server.port, stringNumbers: true, keyPrefix: 'p:', enableAutoPipelining: true })),
  'ioredis Redis with sentinels': () => ioredis(new Redis({ sentinels: sentinelNodes(), name: group.name })),
  'node-redis client': () => nodeRedis(createClient({ url: server.uri })),
  'node-redis client in RESP2': () => nodeRedis(createClient({ url: server.uri, RESP: 2 })),
  'node-redis client with types of its own': () =>
    nodeRedis(createClient({ url: server.uri, commandOptions: { typeMapping: strange } })),
  'node-redis pool': () => nodeRedis(createClientPool({ url: server.uri })),
  'node-redis 4 client': () => nodeRedis4(createClient4({ url: server.uri })),
  'node-redis sentinel': () => nodeRedis(createSentinel({ name: group.name, sentinelRootNodes: sentinelNodes() })),
}
const clusters: typeof servers = {
  'ioredis Cluster': () => ioredis(new IoredisCluster(startNodes())),
  'ioredis Cluster that reads from replicas, with a prefix and pipelines': () =>
    ioredis(new IoredisCluster(startNodes(), { scaleReads: 'slave', keyPrefix: 'p:', enableAutoPipelining: true })),
  'node-redis cluster': () => nodeRedis(createCluster({ rootNodes: rootNodes() })),
  'node-redis 4 cluster': () => nodeRedis4(createCluster4({ rootNodes: rootNodes() })),
  'node-redis cluster in RESP2 that reads from replicas': () =>
    nodeRedis(createCluster({ rootNodes: rootNodes(), RESP: 2, useReplicas: true })),
}

const binary = Buffer.from([0, 255, 13, 10, 128, 36])
const isBinary = 'ARGV[1] == string.char(0, 255, 13, 10, 128, 36)'

describe.each(Object.entries({ ...servers, ...clusters }))('%s', (name, openClient) => {
  let opened: Opened
  const call = (key: string, ...command: (string | Buffer)[]) => connectionOf(opened[0]).call(key, command)
  beforeAll(async () => {
    opened = await openClient()
    await Promise.all(['h', 's', 'n', 'log'].map((key) => call(key, 'UNLINK', key)))
  })
  afterAll(() => opened[1]())

  it('is recognized by its kind', () => {
    expect(connectionOf(opened[0]).isCluster).toBe(name in clusters)
  })

  it('returns integers, strings, nulls and lists', async () => {
    expect(await call('s', 'SET', 's', '1')).toBe('OK')
    expect(await call('s', 'GET', 's')).toBe('1')
    expect(await call('h', 'GET', 'h')).toBeNull()
    expect(await call('n', 'INCR', 'n')).toBe(1)
    expect(await call('h', 'HINCRBY', 'h', '7', '8')).toBe(8)
    expect(await call('h', 'HGETALL', 'h')).toEqual(['7', '8'])
    expect(await call('h', 'HMGET', 'h', '7', 'x')).toEqual(['8', null])
    expect(await call('channel', 'PUBLISH', 'channel', 'message')).toBe(0)
    const script = 'return { 1, "2", false, { 9007199254740943, { -3, "" } }, redis.status_reply("FINE") }'
    expect(await call('s', 'EVAL', script, '1', 's')).toEqual([1, '2', null, [9_007_199_254_740_943, [-3, '']], 'FINE'])
  })

  it('passes binary arguments on', async () => {
    expect(await call('s', 'EVAL', `return ${isBinary} and #ARGV[2]`, '1', 's', binary, Buffer.alloc(0))).toBe(0)
  })

  it('returns raw bytes on request', async () => {
    const script = 'return { ARGV[1], { ARGV[1] }, 7, false }'
    const command = ['EVAL', script, '1', 's', binary]
    expect(await connectionOf(opened[0]).call('s', command, true)).toEqual([binary, [binary], 7, null])
    expect(await connectionOf(opened[0]).call('s', ['EVAL', 'return ARGV[1]', '1', 's', binary], true)).toEqual(binary)
    await call('map', 'HSET', 'map', 'name', binary)
    const pairs = await connectionOf(opened[0]).call('map', ['HGETALL', 'map'], true)
    expect(pairs).toEqual([Buffer.from('name'), binary])
  })

  it('accepts many arguments', async () => {
    const many = Array.from({ length: 50_000 }, () => 'x')
    expect(await call('s', 'EVAL', 'return #ARGV', '1', 's', ...many)).toBe(50_000)
  })

  it('reports an unknown script, which is cached after EVAL', async () => {
    const script = `return { KEYS[1], ${Math.random()} }`
    const sha = await call('s', 'EVAL', `return redis.sha1hex(ARGV[1])`, '1', 's', script)
    const unknown = await call('s', 'EVALSHA', String(sha), '1', 's').catch((error: unknown) => error)
    expect(isNoScript(unknown)).toBe(true)
    await call('s', 'EVAL', script, '1', 's')
    expect(await call('s', 'EVALSHA', String(sha), '1', 's')).toHaveLength(2)
  })

  it('finds the node of every key', async () => {
    const keys = Array.from({ length: 60 }, (_, index) => `{${index}}:a`)
    const script = 'redis.call("SET", KEYS[1], ARGV[1]); redis.call("SET", KEYS[2], ARGV[1]); return KEYS[2]'
    const replies = keys.map(async (key) => {
      await call(key, 'EVAL', script, '2', key, `${key}b`, key)
      return [await call(key, 'GET', key), await call(key, 'UNLINK', key, `${key}b`)]
    })
    expect(await Promise.all(replies)).toEqual(keys.map((key) => [key, 2]))
  })

  it('keeps the order of calls', async () => {
    const calls = Array.from({ length: 100 }, (_, index) => call('log', 'RPUSH', 'log', String(index)))
    // A pool has several connections.
    if (!name.includes('pool')) expect(await Promise.all(calls)).toEqual(Array.from(calls, (_, index) => index + 1))
    else expect(new Set(await Promise.all(calls)).size).toBe(100)
  })

  it('passes errors on unchanged; wrapped errors do not contain the arguments', async () => {
    const error = await call('s', 'HGET', 's', 'secret-field').catch((reason: unknown) => reason)
    const wrapped = wrapRedisError(error, 'decide')
    expect(wrapped.code).toBe('FLUXGATE_STORE_FAILED')
    expect(wrapped.message).toMatch(/^The bucket store failed to decide: WRONGTYPE /)
    expect(JSON.stringify([wrapped.cause, Object.entries(wrapped.cause ?? {})])).not.toContain('secret-field')
  })

  it('receives published messages on a separate connection until it unsubscribes', async () => {
    const connection = connectionOf(opened[0])
    const heard: string[] = []
    const stop = await connection.subscribe('p:news', (message) => heard.push(`first ${message}`))
    const stopToo = await connection.subscribe('p:news', (message) => heard.push(`second ${message}`))
    const stopOther = await connection.subscribe('other', (message) => heard.push(message))
    await call('k', 'EVAL', "return redis.call('PUBLISH', ARGV[1], ARGV[2])", '1', 'k', 'p:news', '한국 1')
    await eventually('the message arrives', () => heard.length === 2)
    await stop()
    await call('k', 'EVAL', "return redis.call('PUBLISH', ARGV[1], ARGV[2])", '1', 'k', 'p:news', '2')
    await eventually('the message arrives', () => heard.length === 3)
    await Promise.all([stopToo(), stopOther()])
    expect(heard).toEqual(['first 한국 1', 'second 한국 1', 'second 2'])
  })

  it('resubscribes after a lost connection and reports a gap', async () => {
    const connection = connectionOf(opened[0])
    const heard: string[] = []
    const stop = await connection.subscribe(
      'news',
      (message) => heard.push(message),
      () => heard.push('gap'),
    )
    const masters = name in clusters ? cluster.nodes : name.includes('entinel') ? group.servers : [server]
    for (const one of masters) await one.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await eventually('the subscription is restored', () => heard.includes('gap'))
    await call('k', 'EVAL', "return redis.call('PUBLISH', ARGV[1], ARGV[2])", '1', 'k', 'news', 'again')
    await eventually('the message arrives', () => heard.at(-1) === 'again')
    await stop()
  })

  it('stays open', async () => {
    await connectionOf(opened[0]).close()
    expect(await call('h', 'EXISTS', 'h')).toBe(1)
  })
})

it('rejects a node-redis 4 client in legacy mode', () => {
  expect(() => connectionOf(createClient4({ legacyMode: true }))).toThrow(
    expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID', message: expect.stringContaining('legacyMode') }),
  )
})

it('reports that a node-redis client is not connected', async () => {
  const clients = [createClient(), createClientPool(), createCluster({ rootNodes: [] })]
  for (const client of [...clients, createClient4(), createCluster4({ rootNodes: [] })]) {
    await expect(connectionOf(client).call('k', ['GET', 'k'])).rejects.toMatchObject({
      code: 'FLUXGATE_STORE_MISCONFIGURED',
      message: expect.stringContaining('await client.connect()'),
    })
  }
})

it('adds its listeners once to a client that many stores wait for', async () => {
  const client = new Redis(server.port)
  const attempts = Array.from({ length: 20 }, () => connectionOf(client).ready?.(60_000))
  const counts = ['ready', 'end', 'error'].map((event) => client.listenerCount(event))
  await Promise.all(attempts)
  expect(Math.max(...counts)).toBeLessThanOrEqual(2)
  expect(client.listenerCount('ready')).toBe(0)
  client.disconnect()
})
