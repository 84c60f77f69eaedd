/** Stores that become available after the process that uses them, or never. */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { Decision } from '../../../src/core/decision.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { HttpHandler } from '../../../src/handlers/index.js'
import { createServer } from '../../../src/program/create-server.js'
import { type RedisStoreOptions, redisStore } from '../../../src/stores/redis/redis-store.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { freePort } from '../../servers/free-port.js'
import { startRedis } from '../../servers/redis-server.js'

const limit = { capacity: 5, window: '30d' } as const
const rules = { id: 'api', rules: [{ id: 'all', limitScope: 'GLOBAL', bands: [limit] }] } as const
/** Longer than any server takes to start on a busy machine. */
const longTimeout = { connectTimeoutMs: 20_000 }
const shortTimeout = { connectTimeoutMs: 300 }
const lateMs = 1_000
/** Node.js fires timers up to a millisecond early. */
const timerErrorMs = 1

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

function closed<Part extends { close(): Promise<unknown> }>(part: Part): Part {
  onTestFinished(async () => void (await part.close()))
  return part
}

function countOf(decisions: readonly Decision[]) {
  return {
    allowed: decisions.filter(({ allowed }) => allowed).length,
    degraded: decisions.filter(({ degraded }) => degraded).length,
  }
}

const tenTimes = (decide: () => Promise<Decision>): Promise<Decision[]> =>
  Promise.all(Array.from({ length: 10 }, decide))

describe('Redis that starts one second after the process', () => {
  it.each<[string, (uri: string, options: RedisStoreOptions) => BucketStore]>([
    ['a URI', (uri, options) => closed(redisStore(uri, options))],
    [
      "the caller's ioredis client",
      (uri, options) => {
        const client = new Redis(uri)
        client.on('error', () => {})
        onTestFinished(() => client.disconnect())
        return redisStore(client, options)
      },
    ],
    [
      "the caller's node-redis client",
      (uri, options) => {
        const client = createClient({ url: uri })
        client.on('error', () => {})
        client.connect().catch(() => {})
        onTestFinished(() => client.destroy())
        return redisStore(client, options)
      },
    ],
  ])('is awaited and then decides exactly: %s', async (_, open) => {
    const port = await freePort()
    const store = open(`redis://127.0.0.1:${port}`, { prefix: 'late', ...longTimeout })
    const limiter = createLimiter({ ...limit, store })
    const asked = tenTimes(() => limiter.consume('a'))
    await sleep(lateMs)
    await stopAfterTest(startRedis({ port }))
    expect(countOf(await asked)).toEqual({ allowed: 5, degraded: 0 })
    expect(store.availability?.breaker ?? 'CLOSED').toBe('CLOSED')
  })

  it('is awaited by createFluxGate, which resolves once it is connected', async () => {
    const port = await freePort()
    let isOpen = false
    const opening = createFluxGate({ rules, store: { uri: `redis://127.0.0.1:${port}`, ...longTimeout } })
    const noted = opening.then(() => {
      isOpen = true
    })
    await Promise.race([noted, sleep(2 * lateMs)])
    expect(isOpen).toBe(false)
    await stopAfterTest(startRedis({ port }))
    const gate = closed(await opening)
    expect(countOf(await tenTimes(() => gate.check({})))).toEqual({ allowed: 5, degraded: 0 })
  })
})

describe('a FluxGate server that starts one second after the process', () => {
  it('is awaited by an HttpHandler and then decides exactly', async () => {
    const port = await freePort()
    const handler = closed(new HttpHandler({ url: `http://127.0.0.1:${port}`, ...longTimeout }))
    const asked = tenTimes(() => handler.check({}))
    await sleep(lateMs)
    const gate = closed(await createFluxGate({ rules }))
    await closed(createServer({ gate })).listen({ port })
    expect(countOf(await asked)).toEqual({ allowed: 5, degraded: 0 })
    expect(handler.breaker).toBe('CLOSED')
  })
})

describe('Redis that never starts', () => {
  it.each([
    ['LOCAL', { allowed: 5, degraded: 10 }],
    ['ALLOW', { allowed: 10, degraded: 10 }],
    ['DENY', { allowed: 0, degraded: 10 }],
  ] as const)('is awaited until connectTimeoutMs; then %s applies', async (onStoreFailure, expected) => {
    const port = await freePort()
    const begunAt = performance.now()
    const store = closed(redisStore(`redis://127.0.0.1:${port}`, { prefix: 'never', ...shortTimeout }))
    const limiter = createLimiter({ ...limit, onStoreFailure, store })
    let firstAfterMs = Number.POSITIVE_INFINITY
    const decisions = await tenTimes(async () => {
      const decision = await limiter.consume('a')
      firstAfterMs = Math.min(firstAfterMs, performance.now() - begunAt)
      return decision
    })
    expect(firstAfterMs).toBeGreaterThanOrEqual(shortTimeout.connectTimeoutMs - timerErrorMs)
    expect(countOf(decisions)).toEqual(expected)
  })

  it('is awaited once, not by every decision', async () => {
    const port = await freePort()
    const connectTimeoutMs = 1_000
    const options = { prefix: 'never', connectTimeoutMs }
    const store = closed(redisStore(`redis://127.0.0.1:${port}`, options))
    const limiter = createLimiter({ ...limit, store })
    await limiter.consume('a')
    const begunAt = performance.now()
    for (let i = 0; i < 20; i++) expect(await limiter.consume('a')).toMatchObject({ degraded: true })
    expect(performance.now() - begunAt).toBeLessThan(20 * connectTimeoutMs)
  })

  it('makes createFluxGate emit a process warning without the password', async () => {
    const port = await freePort()
    const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve))
    const uri = `redis://:s3cret@127.0.0.1:${port}`
    const gate = closed(await createFluxGate({ rules, store: { uri, ...shortTimeout } }))
    const warning = await warned
    expect(warning.code).toMatch(/^FLUXGATE_/)
    expect(warning.message).toContain('Cannot reach the bucket store')
    expect(warning.message).not.toContain('s3cret')
    expect(await gate.check({})).toMatchObject({ allowed: true, degraded: true })
  })

  it('is awaited by createFluxGate for resilience.connectTimeoutMs', async () => {
    const port = await freePort()
    const resilience = { failures: 5, ...shortTimeout }
    const begunAt = performance.now()
    const gate = closed(await createFluxGate({ rules, store: `redis://127.0.0.1:${port}`, resilience }))
    expect(performance.now() - begunAt).toBeGreaterThanOrEqual(shortTimeout.connectTimeoutMs - timerErrorMs)
    expect(await gate.check({})).toMatchObject({ degraded: true })
  })
})

describe('a FluxGate server that never starts', () => {
  it('is awaited by an HttpHandler until connectTimeoutMs; then its failure policy applies', async () => {
    const port = await freePort()
    const begunAt = performance.now()
    const handler = closed(
      new HttpHandler({ url: `http://127.0.0.1:${port}`, onStoreFailure: 'DENY', ...shortTimeout }),
    )
    const decisions = await tenTimes(() => handler.check({}))
    expect(performance.now() - begunAt).toBeGreaterThanOrEqual(shortTimeout.connectTimeoutMs - timerErrorMs)
    expect(countOf(decisions)).toEqual({ allowed: 0, degraded: 10 })
  })
})

describe('Redis that rejects the connection', () => {
  it('is not awaited', async () => {
    const server = await stopAfterTest(startRedis({ password: 'right' }))
    const uri = `redis://:wrong@${server.host}:${server.port}`
    // Longer than the test timeout.
    const endless = { connectTimeoutMs: 600_000 }
    const store = closed(redisStore(uri, { prefix: 'rejected', ...endless }))
    const limiter = createLimiter({ ...limit, store })
    expect(countOf(await tenTimes(() => limiter.consume('a')))).toEqual({ allowed: 5, degraded: 10 })
  })
})
