/** Middleware limits in Redis. The code for Redis is loaded only if a limit needs it. */
import type { RequestListener } from 'node:http'
import express from 'express'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { loadRedisStore } from '../../../src/gate/lazy-redis-store.js'
import { rateLimit as expressLimit } from '../../../src/middleware/express.js'
import type { SingleLimit } from '../../../src/middleware/limits/create-guard.js'
import { rateLimit as nodeLimit } from '../../../src/middleware/node.js'
import { bucketStoreContract, manualClock } from '../../../src/testing/index.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freePort } from '../../servers/free-port.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { gateOf, served } from './test-app.js'

const { uri, host, port } = sharedRedis()

async function asking(listener: RequestListener): Promise<() => Promise<number>> {
  const url = await served(listener)
  return async () => (await fetch(url)).status
}

function expressApp(limit: SingleLimit): Promise<() => Promise<number>> {
  const limited = expressLimit(limit)
  onTestFinished(() => limited.close())
  const app = express()
  app.use(limited)
  app.get('/', (_request, response) => {
    response.end('hello')
  })
  return asking(app)
}

function nodeApp(limit: SingleLimit): Promise<() => Promise<number>> {
  const limited = nodeLimit(limit)
  onTestFinished(() => limited.close())
  return asking(limited((_request, response) => void response.end('hello')))
}

describe('loadRedisStore', () => {
  const stores: BucketStore[] = []
  afterAll(() => Promise.all(stores.map((store) => store.close())))
  bucketStoreContract(
    it,
    (clock) => {
      const store = loadRedisStore({ uri }, { prefix: freshPrefix(), clock, timeoutMs: 20_000 })
      stores.push(store)
      return store
    },
    { histories: 20, seed: randomSeed() },
  )

  it('can be closed before it has been loaded', async () => {
    const store = loadRedisStore({ uri })
    await store.close()
    await expect(store.charge([], false)).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
  })
})

describe('a limit with a store in Redis', () => {
  it('is shared by all applications with the same name, whatever their framework', async () => {
    const limit = { capacity: 3, window: '1h', store: { uri, prefix: freshPrefix(), timeoutMs: 20_000 } } as const
    const asked = [await expressApp(limit), await nodeApp(limit)] as const
    const statuses: number[] = []
    for (let turn = 0; turn < 5; turn++) statuses.push(await (asked[turn % 2] as () => Promise<number>)())
    expect(statuses).toEqual([200, 200, 200, 429, 429])
  })

  it('reports the wait by the clock of Redis, even if the clock of the process is wrong', async () => {
    const gate = await gateOf(
      { bands: [{ capacity: 1, window: '1h' }] },
      { store: { uri, prefix: freshPrefix(), timeoutMs: 20_000 } },
    )
    const clock = manualClock(Date.now() - 86_400_000)
    const limited = nodeLimit({ gate, clock })
    const url = await served(limited((_request, response) => void response.end('hello')))
    const reported: (string | null | undefined)[] = []
    for (const status of [200, 429]) {
      const answer = await fetch(url)
      expect(answer.status).toBe(status)
      reported.push(answer.headers.get('ratelimit')?.replace(/;t=(3600|359\d)$/, ';t=about an hour'))
    }
    expect(reported).toEqual(Array(2).fill('"rule.1-per-1h";r=0;t=about an hour'))
  })

  it('follows its failure policy while the server is unavailable', async () => {
    const store = `redis://${host}:${await freePort()}`
    const local = await nodeApp({ capacity: 2, window: '1h', store })
    expect([await local(), await local(), await local()]).toEqual([200, 200, 429])
    const closed = await nodeApp({ capacity: 2, window: '1h', store, onStoreFailure: 'DENY' })
    expect(await closed()).toBe(503)
  })

  it.each([
    ['a URI that is none', `redis://${host}:${port}0000`],
    ['no address', { prefix: 'p' }],
    ['two addresses', { uri, clusterNodes: [`${host}:${port}`] }],
    ['a misspelt setting', { uri, prefx: 'p' }],
    ['an impossible setting', { uri, timeoutMs: -1 }],
    ['no nodes', { clusterNodes: [] }],
  ])('is rejected at once with %s', (_, store) => {
    const limit = { capacity: 1, window: '1h', store } as SingleLimit
    expect(() => expressLimit(limit)).toThrow(expect.objectContaining({ code: 'FLUXGATE_CONFIG_INVALID' }))
  })
})
