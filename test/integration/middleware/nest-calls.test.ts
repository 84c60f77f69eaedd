/** Guards of Nest for GraphQL resolvers and WebSocket gateways, with the packages of Nest. */
import { once } from 'node:events'
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo'
import { type INestApplication, Module, type WebSocketAdapter } from '@nestjs/common'
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core'
import { Args, GraphQLModule, Mutation, Query, ResolveField, Resolver, Subscription } from '@nestjs/graphql'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { IoAdapter } from '@nestjs/platform-socket.io'
import { WsAdapter } from '@nestjs/platform-ws'
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
import { io } from 'socket.io-client'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebSocket } from 'ws'
import type { Decision } from '../../../src/index.js'
import { RateLimit, RateLimitDecision, RateLimitModule, SkipRateLimit } from '../../../src/middleware/nest.js'
import 'reflect-metadata'

type Decorate = (...given: unknown[]) => void
type Options = Parameters<typeof RateLimitModule.forRoot>[0]

/** JavaScript has no decorators of parameters. */
function decorated(owner: { prototype: object }, name: string, decorators: unknown[], ...parameters: unknown[]): void {
  for (const [index, decorate] of parameters.entries()) (decorate as Decorate)(owner.prototype, name, index)
  const method = Object.getOwnPropertyDescriptor(owner.prototype, name) as PropertyDescriptor
  for (const decorate of decorators as Decorate[]) decorate(owner.prototype, name, method)
}

interface Platform {
  readonly http?: AbstractHttpAdapter
  readonly ws?: (app: INestApplication) => WebSocketAdapter
}

async function start(options: Options, providers: unknown[], imports: unknown[], { http, ws }: Platform = {}) {
  class Root {}
  Module({ imports: [RateLimitModule.forRoot(options), ...(imports as [])], providers: providers as [] })(Root)
  const app = await NestFactory.create(Root, http ?? new ExpressAdapter(), { logger: false })
  if (ws !== undefined) app.useWebSocketAdapter(ws(app))
  onTestFinished(() => app.close())
  await app.listen(0, '127.0.0.1')
  return (app.getHttpServer().address() as { port: number }).port
}

const hour = (capacity: number) => ({ capacity, window: '1h' }) as const

describe('GraphQL', () => {
  class Books {
    books() {
      return [{ title: 'Dune' }, { title: 'Emma' }]
    }
    left(decision: Decision | undefined) {
      return decision?.remaining ?? -1
    }
    add(title: string) {
      return title
    }
    free() {
      return 'ok'
    }
    title({ title }: { title: string }) {
      return title
    }
    async *ticks() {
      yield { ticks: 1 }
    }
  }
  Resolver('Book')(Books)
  decorated(Books, 'books', [Query('books')])
  decorated(Books, 'left', [Query('left')], RateLimitDecision())
  decorated(Books, 'add', [Mutation('add'), RateLimit(hour(1))], Args('title'))
  decorated(Books, 'free', [Query('free'), SkipRateLimit()])
  decorated(Books, 'title', [ResolveField('title')])
  decorated(Books, 'ticks', [Subscription('ticks')])

  const typeDefs = `
    type Book { title: String }
    type Query { books: [Book] left: Int free: String }
    type Mutation { add(title: String): String }
    type Subscription { ticks: Int }`

  async function startGraphql(options: Options, more: Partial<ApolloDriverConfig> = {}, platform?: Platform) {
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      typeDefs,
      path: '/graphql',
      fieldResolverEnhancers: ['guards'],
      includeStacktraceInErrorResponses: false,
      ...more,
    })
    const port = await start(options, [Books], [graphql], platform)
    const ask = async (query: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ query }),
      })
      const body = (await response.json()) as {
        data?: Record<string, unknown>
        errors?: { message: string; extensions: object }[]
      }
      return { ...body, status: response.status, headers: response.headers }
    }
    return Object.assign(ask, { port })
  }

  it('counts each field of an operation, but no fields of objects', async () => {
    const ask = await startGraphql(hour(3))
    const first = await ask('{ books { title } }')
    expect([first.data, first.headers.get('ratelimit')]).toEqual([
      { books: [{ title: 'Dune' }, { title: 'Emma' }] },
      expect.stringContaining(';r=2;'),
    ])
    const two = await ask('{ one: left, other: left }')
    expect(new Set(Object.values(two.data ?? {}))).toEqual(new Set([1, 0]))
    expect(two.headers.get('ratelimit-policy')).toBe('"limit.3-per-1h";q=3;w=3600')
    expect((await ask('{ free }')).data).toEqual({ free: 'ok' })
    const { errors, headers, status } = await ask('{ books { title } }')
    expect([status, errors]).toEqual([
      200,
      [
        expect.objectContaining({
          message: expect.stringMatching(/^The limit "limit\.3-per-1h" of 3 is exhausted\. Try again in \d+ s\.$/),
          extensions: { code: 'RATE_LIMITED', status: 429, retryAfterMs: expect.any(Number) },
        }),
      ],
    ])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(1_000)
  })

  it('rejects aliases of a limited mutation, and leaves other fields alone', async () => {
    const ask = await startGraphql(hour(50))
    const { data, errors } = await ask('mutation { a: add(title: "Dune") b: add(title: "Emma") }')
    expect([data, errors?.map(({ extensions }) => extensions)]).toEqual([
      { a: 'Dune', b: null },
      [expect.objectContaining({ code: 'RATE_LIMITED' })],
    ])
    expect((await ask('{ left }')).data).toEqual({ left: 49 })
  })

  it('passes the HTTP request to hooks, and the message of the options to clients', async () => {
    const ask = await startGraphql({
      ...hour(1),
      key: ({ headers }: { headers: Record<string, unknown> }) => headers['x-user'] as string,
      message: ({ limit }: Decision) => `at most ${limit}`,
    } as Options)
    for (const user of ['ann', 'bob']) expect((await ask('{ left }', { 'x-user': user })).data).toEqual({ left: 0 })
    expect((await ask('{ left }', { 'x-user': 'ann' })).errors?.[0]?.message).toBe('at most 1')
  })

  it('ends a field with an error after onRejected, or with the error that onRejected throws', async () => {
    const onRejected = vi.fn()
    const ask = await startGraphql({ ...hour(1), onRejected })
    expect((await ask('{ left }')).data).toEqual({ left: 0 })
    expect((await ask('{ left }')).errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED' })
    onRejected.mockRejectedValue(new Error('later'))
    expect((await ask('{ left }')).errors?.[0]?.message).toBe('later')
    expect(onRejected).toHaveBeenCalledTimes(2)
  })

  it('frees the slots of requests in progress after the response', async () => {
    const ask = await startGraphql({ algorithm: 'CONCURRENCY', capacity: 2 })
    for (let i = 0; i < 3; i++) expect((await ask('{ one: left, other: left }')).errors).toBeUndefined()
  })

  it('counts requests on Fastify, and sends headers if the context has the reply', async () => {
    const context = (req: unknown, res: unknown) => ({ req, res })
    const ask = await startGraphql(hour(2), { context }, { http: new FastifyAdapter() })
    expect((await ask('{ left }')).headers.get('ratelimit')).toMatch(/;r=1;/)
    const plain = await startGraphql(hour(1), {}, { http: new FastifyAdapter() })
    expect((await plain('{ left }')).data).toEqual({ left: 0 })
    expect((await plain('{ left }')).errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED' })
  })

  it('counts subscriptions', async () => {
    const { port } = await startGraphql(hour(1), { subscriptions: { 'graphql-ws': true } })
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws')
    onTestFinished(() => socket.close())
    const received: { type: string; id?: string; payload?: unknown }[] = []
    socket.on('message', (message) => received.push(JSON.parse(String(message))))
    await once(socket, 'open')
    const send = (message: object): void => socket.send(JSON.stringify(message))
    const next = (type: string, id?: string) =>
      vi.waitFor(() => {
        const found = received.find((one) => one.type === type && one.id === id)
        return found ?? expect.fail(`no ${type}: ${JSON.stringify(received)}`)
      })
    send({ type: 'connection_init' })
    await next('connection_ack')
    send({ type: 'subscribe', id: '1', payload: { query: 'subscription { ticks }' } })
    expect((await next('next', '1')).payload).toEqual({ data: { ticks: 1 } })
    send({ type: 'subscribe', id: '2', payload: { query: 'subscription { ticks }' } })
    expect((await next('next', '2')).payload).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED' } }] })
  })

  it('warns of a context without a request', async () => {
    const warn = vi.fn()
    const context = () => ({ req: {} })
    const ask = await startGraphql({ ...hour(5), logger: { warn } }, { context })
    for (let i = 0; i < 2; i++) expect((await ask('{ free left }')).data).toMatchObject({ left: 4 - i })
    expect(warn.mock.calls).toEqual([
      [
        expect.stringContaining('Return { req, res } from the context function'),
        { code: 'FLUXGATE_IDENTITY_UNCONFIGURED' },
      ],
    ])
  })
})

describe.each([
  ['ws', (app: INestApplication) => new WsAdapter(app)],
  ['Socket.IO', (app: INestApplication) => new IoAdapter(app)],
] as const)('a WebSocket gateway with %s', (name, adapter) => {
  class Chat {
    /** The adapter of `ws` passes the upgrade request, that of Socket.IO stores it. */
    handleConnection(client: { request?: unknown }, request?: unknown) {
      if (request !== undefined) client.request = request
    }
    send({ text }: { text: string }, decision: Decision | undefined) {
      return { event: 'sent', data: { text, remaining: decision?.remaining } }
    }
    shout() {
      return { event: 'sent', data: {} }
    }
    free() {
      return { event: 'sent', data: {} }
    }
  }
  WebSocketGateway()(Chat)
  decorated(Chat, 'send', [SubscribeMessage('send')], MessageBody(), RateLimitDecision())
  decorated(Chat, 'shout', [SubscribeMessage('shout'), RateLimit(hour(1))])
  decorated(Chat, 'free', [SubscribeMessage('free'), SkipRateLimit()])

  /** Returns a function that sends a message and resolves with the event of the response and its data. */
  async function connect(port: number, headers: Record<string, string> = {}) {
    const answers: [string, Record<string, unknown>][] = []
    const take = () =>
      vi.waitFor(() => answers.shift() ?? expect.fail('no response yet'), { timeout: 60_000, interval: 5 })
    if (name === 'ws') {
      const client = new WebSocket(`ws://127.0.0.1:${port}`, { headers })
      onTestFinished(() => client.close())
      client.on('message', (message) => {
        const { event, data } = JSON.parse(String(message))
        answers.push([event, data])
      })
      await once(client, 'open')
      return (event: string, data: object = {}) => {
        client.send(JSON.stringify({ event, data }))
        return take()
      }
    }
    const client = io(`http://127.0.0.1:${port}`, { transports: ['websocket'], extraHeaders: headers })
    onTestFinished(() => void client.close())
    client.onAny((event, data) => answers.push([event, data]))
    await vi.waitFor(() => expect(client.connected).toBe(true))
    return (event: string, data: object = {}) => {
      client.emit(event, data)
      return take()
    }
  }

  const startChat = (options: Options) => start(options, [Chat], [], { ws: adapter })

  it('counts messages, and sends an exception for rejected ones', async () => {
    const port = await startChat(hour(2))
    const send = await connect(port)
    expect(await send('send', { text: 'hi' })).toEqual(['sent', { text: 'hi', remaining: 1 }])
    const other = await connect(port)
    expect(await other('send', { text: 'ho' })).toEqual(['sent', { text: 'ho', remaining: 0 }])
    expect(await send('send', { text: 'hi' })).toEqual([
      'exception',
      expect.objectContaining({ status: 429, message: expect.stringMatching(/^The limit "limit\.2-per-1h"/) }),
    ])
    expect((await send('free'))[0]).toBe('sent')
    expect([(await send('shout'))[0], (await send('shout'))[0]]).toEqual(['sent', 'exception'])
  })

  it('matches the event as a path', async () => {
    const port = await startChat({ ...hour(1), path: '/send', method: 'MESSAGE' })
    const send = await connect(port)
    expect([(await send('send'))[0], (await send('send'))[0], (await send('shout'))[0]]).toEqual([
      'sent',
      'exception',
      'sent',
    ])
  })

  it('passes the client to hooks, and uses them for the rejection', async () => {
    const clients = new WeakMap<object, string>()
    const key = (client: object) => {
      const known = clients.get(client) ?? Math.random().toString()
      clients.set(client, known)
      return known
    }
    const port = await startChat({ ...hour(1), key, message: { error: 'slow down' } })
    const [one, other] = [await connect(port), await connect(port)]
    expect([(await one('send'))[0], (await other('send'))[0]]).toEqual(['sent', 'sent'])
    expect(await one('send')).toEqual(['exception', expect.objectContaining({ error: 'slow down' })])
  })

  it('does not count requests in progress, which end with a response', async () => {
    const port = await startChat({ algorithm: 'CONCURRENCY', capacity: 1 })
    const send = await connect(port)
    for (let i = 0; i < 2; i++) expect((await send('send'))[1]).toMatchObject({ message: 'Internal server error' })
  })

  it('reads forwarded addresses from trusted proxies only, and warns of others', async () => {
    const warn = vi.fn()
    const port = await startChat({ ...hour(1), logger: { warn } })
    const behind = await Promise.all(
      ['203.0.113.1', '203.0.113.2'].map((ip) => connect(port, { 'x-forwarded-for': ip })),
    )
    expect((await behind[0]?.('send'))?.[0]).toBe('sent')
    expect((await behind[1]?.('send'))?.[0]).toBe('exception')
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining('Set trustedProxies'), { code: 'FLUXGATE_IDENTITY_UNCONFIGURED' }],
    ])
    const trusting = await startChat({ ...hour(1), trustedProxies: ['loopback'] })
    for (const ip of ['203.0.113.1', '203.0.113.2'])
      expect((await (await connect(trusting, { 'x-forwarded-for': ip }))('send'))[0]).toBe('sent')
  })
})
