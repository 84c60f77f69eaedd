/** The drop-in replacements, briefly. `scripts/compat/run.mjs` runs the suites of the replaced packages. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import originalRateLimit, * as original from 'express-rate-limit'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import * as replacement from '../../../src/compat/express-rate-limit.js'
import { FluxGateStore, rateLimit } from '../../../src/compat/express-rate-limit.js'
import fastifyRateLimit from '../../../src/compat/fastify-rate-limit.js'
import { FluxGateThrottlerStorage } from '../../../src/compat/nestjs-throttler.js'
import {
  RateLimiterMemory,
  RateLimiterQueue,
  RateLimiterQueueError,
  RateLimiterRedis,
  RateLimiterRes,
} from '../../../src/compat/rate-limiter-flexible.js'
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

  it('calls next once if it throws', async () => {
    const calls: unknown[] = []
    const request = { ip: '192.0.2.1', headers: {} }
    const response = { setHeader() {}, headersSent: false }
    const next = (error?: unknown) => {
      calls.push(error)
      throw new Error('in the application')
    }
    await expect(rateLimit({ limit: 1, validate: false })(request, response, next)).rejects.toThrow(
      'in the application',
    )
    expect(calls).toEqual([undefined])
  })

  it('exports the functions, classes and constants of the original', () => {
    const { DAY, HOUR, MINUTE, SECOND } = original
    expect(replacement).toMatchObject({ DAY, HOUR, MINUTE, SECOND })
    expect(Object.keys(replacement)).toEqual(expect.arrayContaining(Object.keys(original)))
  })

  it('sends the Retry-After of the option, as the original does', async () => {
    const seen = []
    for (const create of [rateLimit, originalRateLimit])
      for (const retryAfter of [7, async () => 8]) {
        const url = await listen(express().use(create({ limit: 0, retryAfter, validate: false })))
        seen.push((await fetch(url)).headers.get('retry-after'))
      }
    expect(seen).toEqual(['7', '8', '7', '8'])
  })

  const noResetTime = {
    increment: async () => ({ totalHits: 1, resetTime: undefined }),
    decrement: async () => {},
    resetKey: async () => {},
  }

  it.each<[string, Partial<original.Options>, string[]]>([
    ['a limit of 0', { limit: 0 }, ['warn WRN_ERL_MAX_ZERO']],
    ['an unknown check', { validate: { foo: true } as never }, ['error ERR_ERL_UNKNOWN_VALIDATION']],
    [
      'a store without reset times',
      { store: noResetTime, standardHeaders: 'draft-7' },
      ['error ERR_ERL_HEADERS_NO_RESET'],
    ],
    ['options of express-slow-down', { delayAfter: 1 } as never, []],
    ['a limit that is correct', { limit: 1 }, []],
  ])('reports %s with the code of the original', async (_, options, codes) => {
    for (const create of [rateLimit, originalRateLimit]) {
      const reported: string[] = []
      const note = (level: string) => (error: unknown) =>
        void reported.push(`${level} ${(error as { code: string }).code}`)
      const app = express().use(create({ ...options, logger: { error: note('error'), warn: note('warn') } } as never))
      await fetch(await listen(app))
      expect(reported).toEqual(codes)
    }
  })

  it.each([
    ['is created for each request', '192.0.2.1', 'ERR_ERL_CREATED_IN_REQUEST_HANDLER'],
    ['has a request without an IP address', 'unknown', 'ERR_ERL_INVALID_IP_ADDRESS'],
  ])('reports that a limit %s with the code of the original', async (_, ip, code) => {
    for (const create of [rateLimit, originalRateLimit]) {
      const reported: unknown[] = []
      const options = { logger: { error: (error: unknown) => void reported.push(error), warn: () => {} } }
      const kept = create(options)
      const app = express().set('trust proxy', 1)
      app.use((request, response, next) => (ip === 'unknown' ? kept : create(options))(request, response, next))
      await fetch(await listen(app), { headers: { 'x-forwarded-for': ip } })
      expect(reported).toEqual([expect.objectContaining({ code })])
    }
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
  it('closes the connection to Redis that it opened with the application', async () => {
    const admin = new Redis(uri)
    onTestFinished(() => admin.disconnect())
    const connections = async () => ((await admin.client('LIST')) as string).trim().split('\n').length
    const before = await connections()
    const app = Fastify()
    await app.register(fastifyRateLimit, { max: 1, redis: uri, nameSpace: 'closing-' })
    app.get('/', async () => 'hello')
    await app.inject('/')
    expect(await connections()).toBeGreaterThan(before)
    await app.close()
    await vi.waitUntil(async () => (await connections()) === before, { timeout: 60_000 })
  })

  it('accepts a window with a fraction of a millisecond in Redis', async () => {
    const app = Fastify()
    onTestFinished(() => app.close())
    await app.register(fastifyRateLimit, { max: 1, timeWindow: () => 60_000.4, redis: uri, nameSpace: 'fraction-' })
    app.get('/', async () => 'hello')
    expect([(await app.inject('/')).statusCode, (await app.inject('/')).statusCode]).toEqual([200, 429])
  })

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

describe('options of compat/rate-limiter-flexible', () => {
  const script = `local hits = redis.call('incrby', KEYS[1], ARGV[1])
if hits == tonumber(ARGV[1]) then redis.call('expire', KEYS[1], ARGV[2] * ARGV[3]) end
return { hits, redis.call('pttl', KEYS[1]) }`

  /** The results of actions under the original and under the replacement. */
  async function bothResults(options: object, actions: number) {
    const client = new Redis(uri)
    onTestFinished(() => client.disconnect())
    const { RateLimiterRedis: Original } = await import('rate-limiter-flexible')
    const all = []
    for (const [index, Limiter] of [Original, RateLimiterRedis].entries()) {
      const keyPrefix = `options:${index}:${JSON.stringify(options)}`
      const limiter = new Limiter({ points: 2, duration: 30, ...options, storeClient: client, keyPrefix } as never)
      const results = []
      for (let i = 0; i < actions; i++) {
        const [outcome] = await Promise.allSettled([limiter.consume('ann')])
        const { consumedPoints, remainingPoints, msBeforeNext } = (
          outcome.status === 'fulfilled' ? outcome.value : outcome.reason
        ) as RateLimiterRes
        results.push([outcome.status, consumedPoints, remainingPoints, Math.ceil(msBeforeNext / 10_000)])
      }
      await limiter.block('bob', 5)
      results.push((await limiter.get('bob'))?.consumedPoints)
      all.push(results)
    }
    return all as [unknown[], unknown[]]
  }

  it('counts with customIncrTtlLuaScript, and blocks with blockDuration', async () => {
    const [expected, found] = await bothResults({ customIncrTtlLuaScript: script, blockDuration: 100 }, 4)
    expect(found).toEqual(expected)
    expect(found).toEqual([
      ['fulfilled', 1, 1, 6],
      ['fulfilled', 2, 0, 6],
      ['rejected', 3, 0, 10],
      ['rejected', 4, 0, 10],
      3,
    ])
  })

  it('blocks at blockOnConsumed', async () => {
    const [expected, found] = await bothResults({ blockOnConsumed: 4, blockDuration: 100 }, 5)
    expect(found).toEqual(expected)
    expect(found).toEqual([
      ['fulfilled', 1, 1, 3],
      ['fulfilled', 2, 0, 3],
      ['rejected', 3, 0, 3],
      ['rejected', 4, 0, 10],
      ['rejected', 5, 0, 10],
      4,
    ])
    const options = { points: 5, duration: 1, storeClient: uri }
    expect(() => new RateLimiterRedis({ ...options, blockOnConsumed: 4 })).toThrow(
      'blockOnConsumed must be at least points, which is 5; received 4.',
    )
    expect(() => new RateLimiterRedis({ ...options, customIncrTtlLuaScript: 7 as never })).toThrow(
      'customIncrTtlLuaScript must be the text of a script; received number.',
    )
  })

  it('counts durations that are not whole milliseconds in Redis', async () => {
    // 1000.9999999999999 milliseconds.
    const limiter = new RateLimiterRedis({ points: 1, duration: 1.001, blockDuration: 1.001, storeClient: uri })
    onTestFinished(() => limiter.close())
    await limiter.consume('ann')
    await expect(limiter.consume('ann')).rejects.toMatchObject({ msBeforeNext: 1_001 })
    await limiter.set('ann', 1, 1.001)
    expect(await limiter.get('ann')).toMatchObject({ consumedPoints: 1 })
  })

  it('closes the connection that it opened for a URI', async () => {
    const limiter = new RateLimiterRedis({ points: 1, duration: 1, storeClient: uri })
    await limiter.consume('closing')
    await limiter.close()
    await expect(limiter.consume('closing')).rejects.toThrow(/closed/)
  })

  it.each([
    ['points that never return', { msBeforeNext: -1 }],
    ['more than 24.8 days until the next point', { msBeforeNext: Number.MAX_SAFE_INTEGER }],
  ])('a queue waits without calling the limiter all the time: %s', async (_, rejection) => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    let calls = 0
    const consume = async () => {
      calls++
      throw rejection
    }
    const queue = new RateLimiterQueue({ points: 1, consume, get: async () => null })
    queue.removeTokens(1).catch(() => {})
    await vi.advanceTimersByTimeAsync(60_000)
    expect(calls).toBeLessThanOrEqual(61)
  })

  it('rejects queued requests that have expired', async () => {
    const queue = new RateLimiterQueue(new RateLimiterMemory({ points: 1, duration: 1 }))
    await queue.removeTokens(1)
    const past = Math.floor(Date.now() / 1000)
    const waiting = [
      queue.removeTokens(1, undefined, past),
      queue.removeTokens(1),
      queue.removeTokens(1, undefined, past),
    ]
    const outcomes = await Promise.allSettled(waiting)
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
    expect((outcomes[0] as PromiseRejectedResult).reason).toBeInstanceOf(RateLimiterQueueError)
  })

  it('reports all points as remaining if the store fails', async () => {
    const fail = async () => {
      throw new Error('down')
    }
    const queue = new RateLimiterQueue({ points: 7, consume: fail, get: fail })
    expect(await queue.getTokensRemaining()).toBe(7)
  })
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
