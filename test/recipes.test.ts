/** Starts the example of each recipe in docs/guide/recipes.md as a process, and uses it as its README describes. */
import { once } from 'node:events'
import { ClientProxyFactory, Transport } from '@nestjs/microservices'
import { lastValueFrom } from 'rxjs'
import { io, type Socket } from 'socket.io-client'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { startServerExample } from './fixtures/start-example.js'
import { sharedRedis } from './servers/shared-redis.js'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

describe('protect-logins', () => {
  it('limits failures per account and per address, and bans an address that continues', async () => {
    const { url, stop } = await startServerExample('protect-logins')
    const login = async (email: string, password: string) => {
      const { status, headers } = await fetch(`${url}/login`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ email, password }),
      })
      return { status, retryAfter: Number(headers.get('retry-after') ?? 0) }
    }
    const attempts = async (count: number, email: string, password: string): Promise<number[]> => {
      const statuses: number[] = []
      for (let i = 0; i < count; i++) statuses.push((await login(email, password)).status)
      return statuses
    }

    expect(await attempts(12, 'bob@example.com', 'battery staple')).toEqual(Array(12).fill(200))
    expect(await attempts(5, 'ann@example.com', 'guess')).toEqual(Array(5).fill(401))
    expect(await attempts(1, ' Ann@Example.com', 'correct horse')).toEqual([429])
    // Six of the ten failures of this address are used.
    expect(await attempts(4, 'nobody@example.com', 'guess')).toEqual(Array(4).fill(401))
    expect(await attempts(2, 'bob@example.com', 'battery staple')).toEqual([429, 429])
    const banned = await login('bob@example.com', 'battery staple')
    expect(banned.status).toBe(429)
    expect(banned.retryAfter).toBe(3_600)
    expect(await stop()).toEqual([0, null])
  })
})

describe('limit-plans', () => {
  it('applies the limits of the plan, and a higher one to a single customer', async () => {
    const { url, stop } = await startServerExample('limit-plans')
    const get = async (customer: string): Promise<string> => {
      const response = await fetch(url, { headers: { 'X-API-Key': `key-of-${customer}` } })
      return response.status === 200 ? (await response.text()).trim() : String(response.status)
    }
    const answers: string[] = []
    for (const customer of ['ann', 'ann', 'ann', 'ann', 'bob', 'carol', 'eve']) answers.push(await get(customer))
    expect(answers).toEqual([
      'free: 2 left',
      'free: 1 left',
      'free: 0 left',
      '429',
      'pro: 9 left',
      'pro: 49 left',
      '401',
    ])
    expect(await stop()).toEqual([0, null])
  })
})

describe('limit-trpc', () => {
  it('counts every call of a batch', async () => {
    const { url, stop } = await startServerExample('limit-trpc')
    const response = await fetch(`${url}/login,login,login,login?batch=1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{}',
    })
    const results = (await response.json()) as object[]
    expect(results.slice(0, 3)).toEqual(Array(3).fill({ result: { data: 'Welcome.' } }))
    expect(results[3]).toMatchObject({
      error: { message: 'Too many requests.', data: { code: 'TOO_MANY_REQUESTS', retryAfterMs: expect.any(Number) } },
    })
    expect(await (await fetch(`${url}/hello`)).json()).toEqual({ result: { data: 'Hello.' } })
    expect(await stop()).toEqual([0, null])
  })
})

describe('limit-socket-io', () => {
  it('rejects messages over the limit, and bans and disconnects a client that continues', async () => {
    const { url, stop } = await startServerExample('limit-socket-io')
    const connect = (): Socket => {
      const socket = io(url, { forceNew: true, reconnection: false })
      cleanups.push(() => socket.close())
      return socket
    }
    const socket = connect()
    await once(socket as never, 'connect')
    const disconnected = once(socket as never, 'disconnect')
    const send = (): Promise<unknown> => socket.emitWithAck('chat', 'hello')
    expect(await Promise.all(Array.from({ length: 30 }, send))).toEqual(Array(30).fill({ ok: true }))
    const rejected = { error: 'too many messages', retryAfterMs: expect.any(Number) }
    // A permit is refilled every two seconds.
    await expect.poll(send).toEqual(rejected)
    for (let i = 0; i < 60; i++) socket.emit('chat', 'hello')
    expect(await disconnected).toEqual(['io server disconnect', undefined])
    const [error] = (await once(connect() as never, 'connect_error')) as [Error & { data: unknown }]
    expect(error.message).toBe('BANNED')
    expect(error.data).toEqual({ retryAfterMs: expect.any(Number) })
    expect(await stop()).toEqual([0, null])
  })
})

describe('limit-websocket', () => {
  it('limits open connections and messages', async () => {
    const { url, stop } = await startServerExample('limit-websocket')
    const connect = (): WebSocket => {
      const socket = new WebSocket(url.replace('http:', 'ws:'))
      cleanups.push(() => socket.terminate())
      return socket
    }
    const [first, second] = [connect(), connect()]
    await Promise.all([once(first, 'open'), once(second, 'open')])
    const [error] = (await once(connect(), 'error').catch((reason) => [reason])) as [Error]
    expect(error.message).toBe('Unexpected server response: 429')

    const received: string[] = []
    first.on('message', (data) => received.push(String(data)))
    for (let i = 0; i < 60; i++) first.send(`message ${i}`)
    await expect.poll(() => received.length).toBe(60)
    expect(received.slice(0, 30)).toEqual(Array.from({ length: 30 }, (_, i) => `echo: message ${i}`))
    const [rejected = '{}'] = received.filter((message) => !message.startsWith('echo'))
    expect(JSON.parse(rejected)).toEqual({ error: 'too many messages', retryAfterMs: expect.any(Number) })

    // The slot of a closed connection is free.
    second.close()
    await expect
      .poll(() =>
        once(connect(), 'open').then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    expect(await stop()).toEqual([0, null])
  })
})

describe('limit-nest-graphql', () => {
  it('counts every field of an operation, whatever its alias', async () => {
    const { url, stop } = await startServerExample('limit-nest-graphql')
    const send = async (query: string): Promise<unknown> => {
      const headers = { 'Content-Type': 'application/json' }
      const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
      return response.json()
    }
    const logins = ['a', 'b', 'c', 'd'].map((alias) => `${alias}: login(password: "x")`)
    const rejected = {
      path: ['d'],
      extensions: { code: 'RATE_LIMITED', status: 429, retryAfterMs: expect.any(Number) },
    }
    expect(await send(`mutation { ${logins.join(' ')} }`)).toMatchObject({ errors: [rejected] })
    expect(await send('{ hello }')).toEqual({ data: { hello: 'Hello.' } })
    expect(await stop()).toEqual([0, null])
  })
})

describe('limit-nest-microservice', () => {
  it('limits messages per tenant, and rejects those without a tenant', async () => {
    const { url, stop } = await startServerExample('limit-nest-microservice')
    const client = ClientProxyFactory.create({
      transport: Transport.TCP,
      options: { host: '127.0.0.1', port: Number(new URL(url).port) },
    })
    cleanups.push(() => client.close())
    const send = (data: object): Promise<unknown> =>
      lastValueFrom(client.send('reports.create', data)).catch((error: unknown) => error)
    for (let i = 0; i < 3; i++) expect(await send({ tenant: 'acme' })).toBe('a report for acme')
    expect(await send({ tenant: 'acme' })).toEqual({ status: 429, reason: 'LIMITED', retryAfterMs: expect.any(Number) })
    expect(await send({ tenant: 'other' })).toBe('a report for other')
    expect(await send({})).toMatchObject({ status: 429, reason: 'MISSING_KEY' })
    client.close()
    expect(await stop()).toEqual([0, null])
  })
})

describe('limit-lambda', () => {
  it('limits events of API Gateway, in Redis', async () => {
    process.env.REDIS_URI = sharedRedis().uri
    const module = '../examples/limit-lambda/index.mjs'
    const { handler } = (await import(module)) as { handler: (event: object) => Promise<LambdaResult> }
    const event = (method: string, rawPath: string, body?: string) => ({
      rawPath,
      rawQueryString: 'from=app',
      headers: { 'content-type': 'text/plain' },
      requestContext: { domainName: 'example.com', http: { method, sourceIp: '203.0.113.7' } },
      ...(body === undefined ? {} : { body: Buffer.from(body).toString('base64'), isBase64Encoded: true }),
    })
    const results: LambdaResult[] = []
    for (let i = 0; i < 4; i++) results.push(await handler(event('POST', '/login', 'ann')))
    expect(results.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 429])
    expect(results[3]?.headers['retry-after']).toBe('20')
    const hello = await handler(event('GET', '/'))
    expect(hello).toMatchObject({ statusCode: 200, body: 'Hello.\n', cookies: [] })
    expect(hello.headers.ratelimit).toMatch(/^"per-address\.minute";r=56;/)
  })
})

interface LambdaResult {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>
  readonly cookies: readonly string[]
  readonly body: string
}
