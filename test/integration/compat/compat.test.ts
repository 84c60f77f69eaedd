/** The drop-in replacements, briefly. `scripts/compat/run.mjs` runs the suites of the replaced packages. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import originalRateLimit from 'express-rate-limit'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { FluxGateStore, rateLimit } from '../../../src/compat/express-rate-limit.js'
import fastifyRateLimit from '../../../src/compat/fastify-rate-limit.js'
import { FluxGateThrottlerStorage } from '../../../src/compat/nestjs-throttler.js'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from '../../../src/compat/rate-limiter-flexible.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'

let redis: RedisServer
let uri: string
beforeAll(async () => {
  redis = await startRedis()
  uri = `redis://127.0.0.1:${redis.port}`
})
afterAll(() => redis.stop())

async function listen(app: RequestListener): Promise<string> {
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('compat/express-rate-limit', () => {
  const quickStart = { windowMs: 15 * 60 * 1000, limit: 2, standardHeaders: 'draft-8', legacyHeaders: false } as const

  it.each([true, false])(
    'the quick start responds as the original does (legacy headers: %s)',
    async (legacyHeaders) => {
      const options = { ...quickStart, legacyHeaders }
      const seen = []
      for (const limit of [rateLimit(options), originalRateLimit(options)]) {
        const url = await listen(
          express()
            .use(limit)
            .get('/', (_, response) => void response.send('hello')),
        )
        const responses = []
        for (let i = 0; i < 4; i++) {
          const response = await fetch(url)
          const headers = Object.fromEntries(response.headers)
          responses.push({
            ...headers,
            date: '',
            'x-ratelimit-reset': '',
            status: response.status,
            body: await response.text(),
          })
        }
        seen.push(responses)
      }
      expect(seen[0]).toEqual(seen[1])
      expect(seen[0]?.map(({ status }) => status)).toEqual([200, 200, 429, 429])
    },
  )

  it('gives clients behind a proxy separate limits with trust proxy', async () => {
    const app = express()
    app.set('trust proxy', 1)
    app.use(rateLimit({ limit: 1 })).get('/', (_, response) => void response.send('hello'))
    const url = await listen(app)
    const statusOf = async (ip: string) => (await fetch(url, { headers: { 'x-forwarded-for': ip } })).status
    expect([await statusOf('192.0.2.1'), await statusOf('192.0.2.1'), await statusOf('192.0.2.2')]).toEqual([
      200, 429, 200,
    ])
  })

  it.each([
    ['this', rateLimit],
    ['the original', originalRateLimit],
  ] as const)('counts across processes with FluxGateStore in %s middleware', async (title, create) => {
    const prefix = `express:${title}:`
    const stores = [1, 2].map(() => new FluxGateStore({ redis: uri, prefix }))
    onTestFinished(async () => {
      for (const store of stores) await store.shutdown()
    })
    const urls = []
    for (const store of stores) {
      const limit = create({ limit: 3, store: store as never, validate: false })
      urls.push(
        await listen(
          express()
            .use(limit)
            .get('/', (_, response) => void response.send('hello')),
        ),
      )
    }
    const statuses = []
    for (const url of [...urls, ...urls]) statuses.push((await fetch(url)).status)
    expect(statuses).toEqual([200, 200, 200, 429])
  })

  it('reports an unknown option instead of ignoring it', () => {
    const reported: unknown[] = []
    const logger = { error: (error: unknown) => void reported.push(error), warn: () => {} }
    rateLimit({ logger, windowMS: 1000 } as never)
    expect(reported).toEqual([
      expect.objectContaining({
        code: 'ERR_ERL_UNKNOWN_OPTION',
        message: expect.stringContaining('Unknown option windowMS'),
      }),
    ])
  })
})

describe('compat/fastify-rate-limit', () => {
  it.each(['memory', 'Redis'])('limits routes in %s, and requests inside a handler', async (where) => {
    const app = Fastify()
    onTestFinished(() => app.close())
    await app.register(fastifyRateLimit, { max: 1, timeWindow: '1 minute', ...(where === 'Redis' && { redis: uri }) })
    app.get('/', async () => 'hello')
    const responses = [await app.inject('/'), await app.inject('/')]
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 429])
    expect(responses[1]?.headers).toMatchObject({
      'x-ratelimit-limit': '1',
      'x-ratelimit-reset': '60',
      'retry-after': '60',
    })
    expect(responses[1]?.json()).toMatchObject({ statusCode: 429, message: 'Rate limit exceeded, retry in 1 minute' })
  })
})

describe('compat/rate-limiter-flexible', () => {
  it('continues the counts of rate-limiter-flexible in Redis, and never allows more than the points', async () => {
    const client = new Redis(uri)
    onTestFinished(() => client.disconnect())
    const { RateLimiterRedis: Original } = await import('rate-limiter-flexible')
    const options = { storeClient: client, points: 20, duration: 60, keyPrefix: 'continued' }
    const original = new Original(options)
    const limiter = new RateLimiterRedis(options)
    for (let i = 0; i < 5; i++) await original.consume('ann')
    const results = await Promise.allSettled(Array.from({ length: 30 }, () => limiter.consume('ann')))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(15)
    expect(await original.get('ann')).toMatchObject({ consumedPoints: 35 })
  })

  it.each(['memory', 'Redis'])(
    'blocks a key in %s for blockDuration with the action that exceeds the points',
    async (where) => {
      const options = { points: 1, duration: 5, blockDuration: 100, keyPrefix: 'blocked' }
      const limiter =
        where === 'memory' ? new RateLimiterMemory(options) : new RateLimiterRedis({ ...options, storeClient: uri })
      await limiter.consume('ann')
      const rejected = await limiter.consume('ann').catch((result: unknown) => result)
      expect(rejected).toBeInstanceOf(RateLimiterRes)
      expect(rejected).toMatchObject({ msBeforeNext: 100_000, remainingPoints: 0, consumedPoints: 2 })
      expect((await limiter.get('ann'))?.msBeforeNext).toBeGreaterThan(90_000)
    },
  )
})

describe('compat/nestjs-throttler', () => {
  it.each(['memory', 'Redis'])('counts by throttler and blocks in %s', async (where) => {
    const storage = new FluxGateThrottlerStorage(where === 'Redis' ? { redis: uri } : {})
    onTestFinished(() => storage.onApplicationShutdown())
    const hit = (name: string) => storage.increment('ann', 1_000, 2, 60_000, name)
    expect(await hit('short')).toEqual({ totalHits: 1, timeToExpire: 1, isBlocked: false, timeToBlockExpire: 0 })
    await hit('short')
    expect(await hit('short')).toEqual({ totalHits: 3, timeToExpire: 60, isBlocked: true, timeToBlockExpire: 60 })
    expect(await hit('long')).toMatchObject({ totalHits: 1, isBlocked: false })
  })
})
