/** Health and readiness of a server whose Redis fails and recovers, mostly without decisions. */
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { systemClock } from '../../../src/core/clock.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { serverWith } from '../../fixtures/test-server.js'
import { freePort } from '../../servers/free-port.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { startProxy } from '../../servers/tcp-proxy.js'

/** A server with real time, the events of its gate, and every status that /health/ready has returned. */
async function watchedServer(store: string | BucketStore, options: Partial<FluxGateOptions> = {}) {
  const bed = await serverWith({ gateOptions: { store, clock: systemClock, ...options } })
  const events: string[] = []
  bed.gate.on('degraded', () => events.push('degraded'))
  bed.gate.on('recovered', () => events.push('recovered'))
  const readyStatuses = new Set<number>()
  const liveStatuses = new Set<number>()
  /** Resolves with the report once strict readiness has this status. Sends no decisions. */
  const strictBecomes = (status: number) =>
    eventually(`strict readiness is ${status}`, async () => {
      readyStatuses.add((await bed.ask('GET', '/health/ready')).status)
      liveStatuses.add((await bed.ask('GET', '/health/live')).status)
      const answer = await bed.ask('GET', '/health/ready?strict')
      return answer.status === status && answer.body
    })
  return { ...bed, events, readyStatuses, liveStatuses, strictBecomes }
}

interface Outage {
  readonly name: string
  readonly cause: RegExp
  readonly timeoutMs: number
  begin(redis: RedisServer): Promise<unknown>
  end(redis: RedisServer): Promise<unknown>
}

const outages: readonly Outage[] = [
  {
    name: 'is killed',
    cause: /not connected to Redis at 127\.0\.0\.1:|connection was lost|connection is closed/,
    timeoutMs: 20_000,
    begin: (redis) => redis.kill(),
    end: (redis) => redis.restart(),
  },
  {
    name: 'hangs',
    // The connection is closed after a second without a reply, which may be before the deadline of the probe.
    cause: /did not reply within 500 ms|does not answer|connection was lost|connection is closed|no connection/,
    timeoutMs: 500,
    begin: async (redis) => redis.pause(),
    end: async (redis) => redis.resume(),
  },
  {
    name: 'becomes a replica',
    cause: /READONLY/,
    timeoutMs: 20_000,
    begin: async (redis) => redis.call('REPLICAOF', '127.0.0.1', await freePort()),
    end: (redis) => redis.call('REPLICAOF', 'NO', 'ONE'),
  },
  {
    name: 'has no memory left',
    cause: /OOM/,
    timeoutMs: 20_000,
    begin: (redis) => redis.call('CONFIG', 'SET', 'maxmemory', 1),
    end: (redis) => redis.call('CONFIG', 'SET', 'maxmemory', 0),
  },
]

describe('without traffic, a Redis that', () => {
  it.each(outages)('$name is reported with the time and the cause, and so is its recovery', async (outage) => {
    const redis = await stopAfterTest(startRedis())
    const { timeoutMs, cause } = outage
    const { gate, events, readyStatuses, liveStatuses, strictBecomes } = await watchedServer(redis.uri, {
      resilience: { timeoutMs },
    })
    expect(await strictBecomes(200)).toMatchObject({ status: 'UP', store: { status: 'UP', error: null } })
    // The state changes only when health is queried, so no event of a slow start can follow.
    events.length = 0
    const begunAt = systemClock.now()
    await outage.begin(redis)
    const down = await strictBecomes(503)
    expect(down).toMatchObject({ status: 'DEGRADED', store: { status: 'DOWN' } })
    expect(down.store.error).toMatch(cause)
    // Reported in whole milliseconds.
    expect(down.store.sinceAt).toBeGreaterThanOrEqual(Math.floor(begunAt))
    expect(down.store.sinceAt).toBeLessThanOrEqual(Math.ceil(systemClock.now()))

    await outage.end(redis)
    const up = await strictBecomes(200)
    expect(up).toMatchObject({ status: 'UP', store: { status: 'UP', error: null } })
    expect(up.store.sinceAt).toBeGreaterThan(down.store.sinceAt)
    expect(events).toEqual(['degraded', 'recovered'])
    expect([...readyStatuses]).toEqual([200])
    expect([...liveStatuses]).toEqual([200])
    expect((await gate.health()).store.breaker).toBe('CLOSED')
  })
})

describe('a server started without Redis', () => {
  it('is ready and degraded from the start, also under DENY, and notices when Redis starts', async () => {
    const port = await freePort()
    const startedAt = systemClock.now()
    const { gate, ask, events, readyStatuses, strictBecomes } = await watchedServer(`redis://127.0.0.1:${port}`, {
      onStoreFailure: 'DENY',
      resilience: { timeoutMs: 20_000 },
    })
    const openedAt = systemClock.now()
    const down = await gate.health()
    expect(down).toMatchObject({ status: 'DEGRADED', store: { status: 'DOWN' } })
    expect(down.store.sinceAt).toBeGreaterThanOrEqual(startedAt)
    expect(down.store.sinceAt).toBeLessThanOrEqual(openedAt)
    expect(down.store.error).toMatch(/not connected to Redis at 127\.0\.0\.1:\d+ \(connect ECONNREFUSED/)
    expect((await strictBecomes(503)).store.error).toBe(down.store.error)
    const decision = await ask('POST', '/api/ratelimit/check', { clientIp: '203.0.113.7', path: '/login' })
    expect(decision.body).toMatchObject({ allowed: false, reason: 'STORE_FAILURE', degraded: true })
    expect(events).toEqual(['degraded'])

    await stopAfterTest(startRedis({ port }))
    expect(await strictBecomes(200)).toMatchObject({ status: 'UP', store: { status: 'UP', error: null } })
    expect(events).toEqual(['degraded', 'recovered'])
    expect([...readyStatuses]).toEqual([200])
  })
})

describe('the probe', () => {
  it('runs at most once per second, however many callers ask', async () => {
    const redis = await stopAfterTest(startRedis())
    const { ask, gate } = await watchedServer(redis.uri, { resilience: { timeoutMs: 20_000 } })
    let elapsedMs = 0
    const { evalsha } = await countCalls(redis, ['evalsha'], async () => {
      const begunAt = performance.now()
      for (let round = 0; round < 5; round++) {
        const requests = Array.from({ length: 200 }, () => ask('GET', '/health/ready?strict'))
        expect(new Set((await Promise.all(requests)).map(({ status }) => status))).toEqual(new Set([200]))
        await Promise.all(Array.from({ length: 200 }, () => gate.health()))
        await new Promise((resolve) => setTimeout(resolve, 300))
      }
      elapsedMs = performance.now() - begunAt
    })
    expect(evalsha).toBeGreaterThanOrEqual(1)
    expect(evalsha).toBeLessThanOrEqual(1 + Math.floor(elapsedMs / 1_000))
  })

  it('ends with the deadline of a call while Redis hangs, and reports it', async () => {
    const redis = await stopAfterTest(startRedis())
    // Never closes a connection by itself, so only the deadline ends a call.
    const client = new Redis(redis.uri)
    client.on('error', () => {})
    onTestFinished(() => client.disconnect())
    const { gate } = await watchedServer(redisStore(client))
    redis.pause()
    const { status, store } = await gate.health()
    expect({ status, store: store.status }).toEqual({ status: 'DEGRADED', store: 'DOWN' })
    expect(store.error).toMatch(/did not reply within 100 ms/)
    redis.resume()
    await eventually('the store is up', async () => (await gate.health()).store.status === 'UP')
  })

  it('does not run unless health is queried', async () => {
    const redis = await stopAfterTest(startRedis())
    await watchedServer(redis.uri)
    const { evalsha } = await countCalls(redis, ['evalsha'], () => new Promise((resolve) => setTimeout(resolve, 2_500)))
    expect(evalsha).toBe(0)
  })

  it('leaves no key behind', async () => {
    const redis = await stopAfterTest(startRedis())
    const { gate } = await watchedServer(redis.uri, { resilience: { timeoutMs: 20_000 } })
    expect((await gate.health()).store.status).toBe('UP')
    await eventually(
      'the key of the probe has expired',
      async () => ((await redis.call('KEYS', '*')) as []).length === 0,
    )
  })

  it('reports an unreachable store with an open circuit breaker, and each change once', async () => {
    const redis = await stopAfterTest(startRedis())
    const proxy = await stopAfterTest(startProxy(redis.port))
    const { gate, events } = await watchedServer(`redis://127.0.0.1:${proxy.port}`, {
      resilience: { timeoutMs: 20_000, openMs: 600_000 },
    })
    const decide = () => gate.check({ clientIp: '203.0.113.7', path: '/login' })
    expect((await decide()).degraded).toBe(false)
    await proxy.refuse()
    proxy.cut()
    await eventually('the circuit breaker is open', async () => {
      await decide()
      return (await gate.health()).store.breaker === 'OPEN'
    })
    expect(await gate.health()).toMatchObject({ status: 'DEGRADED', store: { status: 'DOWN' } })
    await proxy.accept()
    await eventually('the connection is restored', async () => !(await decide()).degraded)
    const health = await eventually('the probe succeeds', async () => {
      const health = await gate.health()
      return health.store.status === 'UP' && health
    })
    expect(health).toMatchObject({ status: 'UP', store: { breaker: 'CLOSED', error: null } })
    expect(events).toEqual(['degraded', 'recovered'])
  })
})
