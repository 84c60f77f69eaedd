/** Without `trustedProxies`, the client's address follows the framework's own setting. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit as expressLimit } from '../../../src/middleware/express.js'
import { rateLimit as fastifyLimit } from '../../../src/middleware/fastify.js'

interface Setup {
  readonly trustProxy: boolean | string
  readonly trustedProxies?: readonly string[]
}

const limitOf = ({ trustedProxies }: Setup) => ({
  capacity: 1,
  window: '1h',
  ...(trustedProxies && { trustedProxies }),
})

async function serveExpress(setup: Setup): Promise<string> {
  const app = express()
  app.set('trust proxy', setup.trustProxy)
  const limit = expressLimit(limitOf(setup))
  // Mounted below another application, which sets the trusted proxies.
  const inner = express().use(limit, (_request, response) => void response.end('ok'))
  const server = createServer(app.use('/inner', inner)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    await limit.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/inner`
}

async function serveFastify(setup: Setup): Promise<string> {
  const app = fastify({ trustProxy: setup.trustProxy })
  app.register(fastifyLimit, limitOf(setup))
  app.get('/inner', () => 'ok')
  onTestFinished(() => app.close())
  return `${await app.listen({ port: 0, host: '127.0.0.1' })}/inner`
}

describe.each([
  ['Express', serveExpress],
  ['Fastify', serveFastify],
])('%s', (_, serve) => {
  const statuses = async (setup: Setup, ...addresses: string[]): Promise<number[]> => {
    const url = await serve(setup)
    const found = []
    for (const address of addresses) found.push((await fetch(url, { headers: { 'X-Forwarded-For': address } })).status)
    return found
  }
  const two = ['203.0.113.1', '203.0.113.2', '9.9.9.9, 203.0.113.2']

  it('distinguishes clients behind a proxy that the application trusts', async () => {
    expect(await statuses({ trustProxy: 'loopback' }, ...two)).toEqual([200, 200, 429])
  })

  it('ignores forwarding headers if the application trusts no proxy', async () => {
    expect(await statuses({ trustProxy: false }, ...two)).toEqual([200, 429, 429])
  })

  it('gives precedence to trustedProxies of the limit', async () => {
    expect(await statuses({ trustProxy: true, trustedProxies: [] }, ...two)).toEqual([200, 429, 429])
    expect(await statuses({ trustProxy: false, trustedProxies: ['127.0.0.1'] }, ...two)).toEqual([200, 200, 429])
  })
})
