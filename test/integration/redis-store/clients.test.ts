/** The store contract over every way to one server: clients of both libraries, a URI, sentinels, and Valkey. */
import { createClient, createSentinel } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RedisOptions } from '../../../src/redis/client/open/target.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { type SentinelGroup, startSentinel } from '../../servers/sentinel.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { valkeyBinary } from '../../servers/valkey.js'
import { contractAndHistories } from './histories.js'

const seed = randomSeed()
const settings = { timeoutMs: 20_000 }

let group: SentinelGroup
beforeAll(async () => {
  group = await startSentinel({ replicas: 0 })
})
afterAll(() => group.stop())

describe('redisStore over node-redis', () => {
  const client = createClient({ url: sharedRedis().uri })
  beforeAll(async () => void (await client.connect()))
  afterAll(() => client.close())
  contractAndHistories(it, (clock) => redisStore(client, { ...settings, prefix: freshPrefix(), clock }), {
    histories: 140,
    seed: seed + 2_000,
  })
})

describe('redisStore over node-redis 4', () => {
  const client = createClient4({ url: sharedRedis().uri })
  beforeAll(async () => void (await client.connect()))
  afterAll(() => client.disconnect())
  contractAndHistories(it, (clock) => redisStore(client, { ...settings, prefix: freshPrefix(), clock }), {
    histories: 60,
    seed: seed + 8_000,
  })
})

/** Each test has its own connection. */
const own = (where: () => string | RedisOptions, histories: number, first: number) =>
  contractAndHistories(
    it,
    async (clock) => {
      const store = redisStore(where(), { ...settings, prefix: freshPrefix(), clock })
      await store.ready(20_000)
      return store
    },
    { histories, seed: seed + first },
  )

describe('redisStore by URI', () => own(() => sharedRedis().uri, 100, 3_000))
describe('redisStore by URI over four sockets', () =>
  own(() => ({ uri: sharedRedis().uri, connections: 4 }), 20, 4_000))
describe('redisStore by sentinels', () =>
  own(
    () => ({ sentinels: group.sentinels.map(({ host, port }) => ({ host, port })), sentinelName: group.name }),
    60,
    5_000,
  ))

describe('redisStore over a sentinel client of node-redis', () => {
  const client = () =>
    createSentinel({ name: group.name, sentinelRootNodes: group.sentinels.map(({ host, port }) => ({ host, port })) })
  let sentinel: ReturnType<typeof client>
  beforeAll(async () => {
    sentinel = client()
    sentinel.on('error', () => {})
    await sentinel.connect()
  })
  afterAll(() => sentinel.destroy())
  contractAndHistories(it, (clock) => redisStore(sentinel, { ...settings, prefix: freshPrefix(), clock }), {
    histories: 40,
    seed: seed + 6_000,
  })
})

const binary = valkeyBinary()
if (binary === undefined)
  console.info('Valkey is not compared: there is no valkey-server on the PATH, and FLUXGATE_TEST_VALKEY names none.')
else
  describe('redisStore on Valkey', () => {
    let server: RedisServer
    beforeAll(async () => {
      server = await startRedis({ binary })
    })
    afterAll(() => server.stop())
    it('is the server under test', async () => {
      expect(String(await server.call('INFO', 'server'))).toContain('valkey_version:')
    })
    own(() => server.uri, 60, 7_000)
  })
