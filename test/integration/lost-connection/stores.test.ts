/**
 * A lost connection costs the decisions in flight and nothing else. If each caller makes one decision at a time, it
 * loses at most one: its next decision starts after the loss was noticed and waits for the new connection.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createLimiter, type Limiter } from '../../../src/gate/limiter/create-limiter.js'
import type { RedisOptions } from '../../../src/redis/client/open/target.js'
import { type RedisStore, type RedisStoreOptions, redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { type Address, openConnection } from '../../servers/resp.js'
import { type SentinelGroup, startSentinel } from '../../servers/sentinel.js'
import { freshPrefix } from '../../servers/shared-redis.js'
import { startProxy, type TcpProxy } from '../../servers/tcp-proxy.js'
import { startCallers, timerErrorMs } from './cut-connections.js'

let server: RedisServer
let proxy: TcpProxy
let sentinels: SentinelGroup
let cluster: Cluster
beforeAll(async () => {
  ;[server, sentinels, cluster] = await Promise.all([startRedis(), startSentinel(), startCluster()])
  proxy = await startProxy(server.port)
})
afterAll(async () => {
  await proxy.stop()
  await Promise.all([server.stop(), sentinels.stop(), cluster.stop()])
})

interface Way {
  readonly name: string
  where(): string | RedisOptions
  /** Ends all client connections. */
  cut(): Promise<unknown>
}

const killOn = (one: RedisServer) => one.call('CLIENT', 'KILL', 'TYPE', 'normal')

/** Excludes the sentinels, which would otherwise consider the primary dead. */
async function killOurs(one: RedisServer): Promise<void> {
  const clients = String(await one.call('CLIENT', 'LIST')).matchAll(/^id=(\d+).* name=fluxgate/gm)
  for (const [, id] of clients) await one.call('CLIENT', 'KILL', 'ID', id ?? '')
}

const ways: readonly Way[] = [
  { name: 'CLIENT KILL on one server', where: () => server.uri, cut: () => killOn(server) },
  { name: 'a cut by a proxy', where: () => `redis://127.0.0.1:${proxy.port}`, cut: async () => proxy.cut() },
  {
    name: 'CLIENT KILL on the primary of sentinels',
    where: () => ({
      sentinels: sentinels.sentinels.map(({ host, port }) => ({ host, port })),
      sentinelName: sentinels.name,
    }),
    cut: async () => killOurs(await sentinels.primary()),
  },
  {
    name: 'CLIENT KILL on all nodes of a cluster',
    where: () => ({ clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) }),
    cut: () => Promise.all(cluster.nodes.map(killOn)),
  },
]

interface Opened {
  readonly store: RedisStore
  readonly limiter: Limiter
}

function open(where: string | RedisOptions, capacity: number, options: RedisStoreOptions = {}): Opened {
  // Cached rejections would show nothing about the connection.
  const store = redisStore(where, { prefix: freshPrefix(), cachedRejections: false, ...options })
  onTestFinished(() => store.close())
  // Nothing is refilled while a test runs.
  const limiter = createLimiter({ algorithm: 'FIXED_WINDOW', capacity, window: '366d', store })
  return { store, limiter }
}

/** Permits that the server has charged. */
async function chargedOf(limiter: Limiter, capacity: number): Promise<number> {
  const { remaining } = await eventually('the store replies', async () => {
    const decision = await limiter.peek('a')
    return !decision.degraded && decision
  })
  // A peek returns what would remain after the decision.
  return capacity - remaining - 1
}

const longest = { timeout: 120_000 }

describe.each(ways)('$name', ({ where, cut }) => {
  it('degrades at most one decision of each caller, and the circuit breaker stays closed', longest, async () => {
    const capacity = 1_000_000_000
    const { store, limiter } = open(where(), capacity)
    await limiter.consume('a')
    const callers = startCallers(() => limiter.consume('a'))
    await callers.madeEach(10)
    expect(callers.degraded()).toBe(0)
    await cut()
    await callers.madeEach(50)
    await callers.stop()
    expect(Math.max(...callers.lost())).toBeLessThanOrEqual(1)
    expect(store.availability?.breaker).toBe('CLOSED')
    // Only degraded decisions may have been charged without being counted here.
    const charged = await chargedOf(limiter, capacity)
    expect(charged).toBeGreaterThanOrEqual(callers.allowed() + 1)
    expect(charged).toBeLessThanOrEqual(callers.allowed() + 1 + callers.degraded())
  })

  it('every 200 ms degrades less than 5 % of the decisions, and no limit is exceeded', longest, async () => {
    const capacity = 3_000
    const { limiter } = open(where(), capacity)
    await limiter.consume('a')
    const callers = startCallers(() => limiter.consume('a'))
    for (let round = 0; round < 10; round++) {
      // Twenty callers lose at most twenty decisions, which is 2 % of these.
      await Promise.all([sleep(200), callers.madeTogether(1_000)])
      await cut()
    }
    await callers.madeTogether(1_000)
    await callers.stop()
    expect(callers.degraded() / callers.made()).toBeLessThan(0.05)
    expect(callers.allowed() + 1).toBeLessThanOrEqual(capacity)
    expect(callers.allowed() + 1).toBeGreaterThanOrEqual(capacity - callers.degraded())
  })
})

/** Opens connections one after another, to measure how long that takes on this machine now. */
async function connectThreeTimes(address: Address): Promise<void> {
  for (let i = 0; i < 3; i++) {
    const connection = await openConnection(address)
    await connection.call('PING')
    connection.close()
  }
}

describe('after one lost connection', () => {
  it('the next decision is exact within 50 ms, or as soon as others can connect three times', async () => {
    const { limiter } = open(server.uri, 1_000)
    await limiter.consume('a')
    for (let round = 0; round < 10; round++) {
      await killOn(server)
      await Promise.all([sleep(50), connectThreeTimes(server.address)])
      expect(await limiter.consume('a')).toMatchObject({ degraded: false })
    }
  })

  it('decisions that start after the loss was noticed wait for the new connection', async () => {
    const { limiter, store } = open(`redis://127.0.0.1:${proxy.port}`, 1_000)
    await limiter.consume('a')
    for (let round = 0; round < 10; round++) {
      const lost = Array.from({ length: 20 }, () => limiter.consume('a'))
      // Sent, but without a reply: nothing is delivered any more.
      proxy.hang()
      await new Promise(setImmediate)
      proxy.cut()
      proxy.resume()
      expect((await Promise.all(lost)).every(({ degraded }) => degraded)).toBe(true)
      const decisions = await Promise.all(Array.from({ length: 20 }, () => limiter.consume('a')))
      expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
    }
    expect(store.availability?.breaker).toBe('CLOSED')
  })

  it('a decision during a slow reconnection does not fail before its own deadline', async () => {
    const timeoutMs = 1_000
    const { where } = ways.find(({ name }) => name.includes('sentinels')) as Way
    const { limiter } = open(where(), 1_000, { timeoutMs })
    await limiter.consume('a')
    const primary = await sentinels.primary()
    for (const sentinel of sentinels.sentinels) sentinel.pause()
    try {
      await killOurs(primary)
      await sleep(timeoutMs / 4)
      const begunAt = performance.now()
      expect(await limiter.consume('a')).toMatchObject({ degraded: true })
      expect(performance.now() - begunAt).toBeGreaterThanOrEqual(timeoutMs - timerErrorMs)
    } finally {
      for (const sentinel of sentinels.sentinels) sentinel.resume()
    }
    await eventually('the store decides', async () => !(await limiter.consume('a')).degraded)
  })
})

describe('a network', () => {
  /** So long that only a new connection, and not elapsed time, can close the circuit breaker. */
  const openMs = 60_000

  async function opened() {
    const own = await stopAfterTest(startRedis())
    const between = await stopAfterTest(startProxy(own.port))
    const { limiter, store } = open(`redis://127.0.0.1:${between.port}`, 10, { openMs })
    expect(await limiter.consume('a')).toMatchObject({ degraded: false, remaining: 9 })
    return { own, between, limiter, store }
  }
  const connections = async (own: RedisServer): Promise<number> =>
    String(await own.call('CLIENT', 'LIST')).split('name=fluxgate').length - 1

  it('that refuses connections: the failure policy applies, and the first decision after recovery is exact', async () => {
    const { own, between, limiter } = await opened()
    await between.refuse()
    between.cut()
    for (let i = 0; i < 10; i++) expect(await limiter.consume('a')).toMatchObject({ allowed: true, degraded: true })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, degraded: true, reason: 'LIMITED' })
    await sleep(500)
    await between.accept()
    await eventually('the connection is restored', async () => (await connections(own)) > 0)
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, degraded: false, remaining: 8 })
  })

  it('that drops all packets: the failure policy applies, and decisions are exact after recovery', async () => {
    const { between, limiter } = await opened()
    between.hang()
    for (let i = 0; i < 10; i++) expect(await limiter.consume('a')).toMatchObject({ allowed: true, degraded: true })
    between.resume()
    const decision = await eventually('the store decides', async () => {
      const decision = await limiter.consume('a')
      return !decision.degraded && decision
    })
    expect(decision.remaining).toBeLessThanOrEqual(8)
  })

  it('that loses a connection without closing it: a new connection is opened, and decisions are exact', async () => {
    const { between, limiter } = await opened()
    between.strand()
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, degraded: true })
    const decision = await eventually('the store decides', async () => {
      const decision = await limiter.consume('a')
      return !decision.degraded && decision
    })
    expect(decision).toMatchObject({ allowed: true, remaining: 8 })
  })
})
