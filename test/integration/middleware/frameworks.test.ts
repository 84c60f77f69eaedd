/** Behavior that is specific to one framework. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import { connect } from 'node:net'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/index.js'
import { rateLimit as expressLimit } from '../../../src/middleware/express.js'
import { rateLimit as fastifyLimit } from '../../../src/middleware/fastify.js'
import { rateLimit as fetchLimit } from '../../../src/middleware/fetch.js'
import { rateLimit as honoLimit } from '../../../src/middleware/hono.js'
import { rateLimit as koaLimit } from '../../../src/middleware/koa.js'
import { RateLimit, RateLimitGuard, RateLimitModule, SkipRateLimit } from '../../../src/middleware/nest.js'
import { rateLimit as nodeLimit } from '../../../src/middleware/node.js'
import { manualClock } from '../../../src/testing/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { type Adapter, adapters, portOf } from './adapters.js'
import { gateOf, served, startBed } from './test-app.js'
import 'reflect-metadata'

const minute = { capacity: 1, window: '1m' } as const

const statuses = async (...urls: string[]): Promise<number[]> => {
  const found: number[] = []
  for (const url of urls) found.push((await fetch(url)).status)
  return found
}

const twoRuleSets = () =>
  createFluxGate({
    defaultRuleSetId: 'all',
    rules: [
      { id: 'all', rules: [{ id: 'r', bands: [{ capacity: 100, window: '1m' }] }] },
      { id: 'strict', rules: [{ id: 's', bands: [{ capacity: 3, window: '1m' }] }] },
    ],
  })

describe('express', () => {
  it('sees the whole path if it is mounted below another application', async () => {
    const app = express()
    app.use('/api', expressLimit({ ...minute, path: '/api/orders' }))
    app.use((_request, response) => void response.end())
    const url = await served(app)
    expect(await statuses(`${url}/api/orders`, `${url}/api/orders`, `${url}/api/other`, `${url}/orders`)).toEqual([
      200, 429, 200, 200,
    ])
  })

  it('passes the typed request to hooks', async () => {
    const app = express()
    app.use(expressLimit({ ...minute, skip: (request: express.Request) => request.get('x-free') === '1' }))
    app.use((_request, response) => void response.end())
    const url = await served(app)
    expect(await statuses(url, url)).toEqual([200, 429])
    expect((await fetch(url, { headers: { 'x-free': '1' } })).status).toBe(200)
  })
})

describe('koa', () => {
  it('passes the context to hooks', async () => {
    const app = new Koa()
    app.use(koaLimit({ ...minute, skip: (context: Koa.Context) => context.get('x-free') === '1' }))
    app.use((context) => {
      context.body = 'ok'
    })
    const url = await served(app.callback())
    expect(await statuses(url, url)).toEqual([200, 429])
    expect((await fetch(url, { headers: { 'x-free': '1' } })).status).toBe(200)
  })
})

describe('fastify', () => {
  async function start(register: (app: FastifyInstance) => void): Promise<string> {
    const app = fastify()
    onTestFinished(() => app.close())
    register(app)
    return app.listen({ port: 0, host: '127.0.0.1' })
  }

  it('limits in preHandler on request, with the parsed body', async () => {
    const app = fastify()
    onTestFinished(() => app.close())
    const key = (request: FastifyRequest) => (request.body as { email: string }).email
    await app.register(fastifyLimit, { ...minute, hook: 'preHandler', key })
    app.post('/', () => 'ok')
    const post = async (email: string) => (await app.inject({ method: 'POST', url: '/', body: { email } })).statusCode
    expect([await post('ann'), await post('bob'), await post('ann')]).toEqual([200, 200, 429])
    await expect(fastify().register(fastifyLimit, { ...minute, hook: 'onSend' as 'onRequest' })).rejects.toMatchObject({
      message: expect.stringContaining("hook: must be 'onRequest' or 'preHandler'; received \"onSend\""),
    })
  })

  it('limits the whole application, including routes of other plugins and unknown paths', async () => {
    const url = await start((app) => {
      app.get('/before', () => 'ok')
      app.register(fastifyLimit, { capacity: 4, window: '1m' })
      app.register(async (plugin: FastifyInstance) => {
        plugin.get('/inside', () => 'ok')
      })
      app.get('/after', () => 'ok')
    })
    const paths = ['/before', '/inside', '/after', '/nowhere', '/before', '/nowhere']
    expect(await statuses(...paths.map((path) => url + path))).toEqual([200, 200, 200, 404, 429, 429])
  })

  it('can exempt a route, or give it its own rule, rule set or permits', async () => {
    const gate = await twoRuleSets()
    onTestFinished(() => gate.close())
    const url = await start((app) => {
      app.register(fastifyLimit, { gate })
      app.get('/', () => 'ok')
      app.get('/free', { config: { rateLimit: false } as object }, () => 'ok')
      app.get('/own', { config: { rateLimit: { capacity: 7, window: '1m' } } as object }, () => 'ok')
      app.get('/strict', { config: { rateLimit: { ruleSetId: 'strict', permits: 2 } } as object }, () => 'ok')
    })
    const limitOf = async (path: string) => {
      const { status, headers } = await fetch(url + path)
      return [status, headers.get('x-ratelimit-remaining'), headers.get('ratelimit-policy')]
    }
    expect(await limitOf('/')).toEqual([200, '99', '"r.100-per-1m";q=100;w=60'])
    expect(await limitOf('/free')).toEqual([200, null, null])
    expect(await limitOf('/own')).toEqual([200, '6', '"GET:.own.7-per-1m";q=7;w=60'])
    expect(await limitOf('/own')).toEqual([200, '5', '"GET:.own.7-per-1m";q=7;w=60'])
    expect(await limitOf('/strict')).toEqual([200, '1', '"s.3-per-1m";q=3;w=60'])
    expect(await limitOf('/strict')).toEqual([429, '1', '"s.3-per-1m";q=3;w=60'])
    expect(await limitOf('/')).toEqual([200, '98', '"r.100-per-1m";q=100;w=60'])
  })

  it('sends a problem document with its content type, without a charset', async () => {
    const url = await start((app) => {
      app.register(fastifyLimit, minute)
    })
    await fetch(url)
    expect((await fetch(url)).headers.get('content-type')).toBe('application/problem+json')
  })

  it('applies limits of routes registered before and after the plugin', async () => {
    const own = () => ({ config: { rateLimit: { capacity: 7, window: '1m' } } as object })
    const app = fastify()
    onTestFinished(() => app.close())
    app.get('/before', own(), () => 'ok')
    await app.register(fastifyLimit, { capacity: 100, window: '1m' })
    app.get('/', () => 'ok')
    app.get('/after', own(), () => 'ok')
    const left = async (url: string) => (await app.inject({ url })).headers['x-ratelimit-remaining']
    expect([await left('/before'), await left('/after'), await left('/')]).toEqual(['6', '6', '99'])
    const later = fastify()
    onTestFinished(() => later.close())
    await later.register(fastifyLimit, { capacity: 100, window: '1m' })
    later.get('/after', own(), () => 'ok')
    expect((await later.inject({ url: '/after' })).headers['x-ratelimit-remaining']).toBe('6')
  })

  it('applies limits that other onRoute hooks add', async () => {
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(fastifyLimit, { capacity: 100, window: '1m' })
    app.addHook('onRoute', (route) => {
      if (route.url.startsWith('/internal')) route.config = { ...route.config, rateLimit: false } as object
    })
    app.get('/', () => 'ok')
    app.get('/internal/health', () => 'ok')
    const left = async (url: string) => (await app.inject({ url })).headers['x-ratelimit-remaining']
    expect([await left('/internal/health'), await left('/')]).toEqual([undefined, '99'])
  })

  it.each([
    ['are not asked where no route says anything', {}, 0],
    ['are asked where one says something', { config: { rateLimit: { capacity: 7, window: '1m' } } as object }, 2],
  ])('requests for their routes %s', async (_, options, times) => {
    const app = fastify()
    onTestFinished(() => app.close())
    let asked = 0
    app.addHook('onRequest', async (request) => {
      const { routeOptions } = request
      Object.defineProperty(request, 'routeOptions', {
        get() {
          asked += 1
          return routeOptions
        },
      })
    })
    await app.register(fastifyLimit, { capacity: 100, window: '1m' })
    app.get('/', () => 'ok')
    app.get('/own', options, () => 'ok')
    for (const url of ['/', '/own']) expect((await app.inject({ url })).statusCode).toBe(200)
    expect(asked).toBe(times)
  })

  it.each([
    [{ capacity: 1 }, 'FLUXGATE_RULES_INVALID'],
    [{ permit: 2 }, 'FLUXGATE_CONFIG_INVALID'],
    [{ permits: 0 }, 'FLUXGATE_CONFIG_INVALID'],
    [{ permits: '2' }, 'FLUXGATE_CONFIG_INVALID'],
    [{ ruleSetId: 'strict' }, 'FLUXGATE_CONFIG_INVALID'],
    [null, 'FLUXGATE_CONFIG_INVALID'],
    [5, 'FLUXGATE_CONFIG_INVALID'],
    ['off', 'FLUXGATE_CONFIG_INVALID'],
  ])('does not start with a route config of %j', async (rateLimit, code) => {
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(fastifyLimit, minute)
    expect(() => app.get('/', { config: { rateLimit } as object }, () => 'ok')).toThrow(
      expect.objectContaining({ code }),
    )
  })

  it.each([
    [{ max: 2 }, 'max: unknown field "max"; did you mean capacity?'],
    [{ permit: 2 }, 'permit: unknown field "permit"; did you mean permits?'],
    [{ window: '1m' }, 'window: must be combined with capacity or bands'],
  ])('names the option that the route config %j misses', async (rateLimit, message) => {
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(fastifyLimit, minute)
    expect(() => app.get('/', { config: { rateLimit } as object }, () => 'ok')).toThrow(message)
  })

  it('passes the typed request to hooks', async () => {
    const url = await start((app) => {
      app.register(fastifyLimit, {
        capacity: 1,
        window: '1m',
        limitScope: 'USER_ID',
        skip: ({ headers }) => headers['x-free'] === '1',
        customize: (context, request: FastifyRequest) => ({ ...context, userId: request.hostname }),
      })
      app.get('/', () => 'ok')
    })
    expect(await statuses(url, url)).toEqual([200, 429])
    expect((await fetch(url, { headers: { 'x-free': '1' } })).status).toBe(200)
  })

  it('rejects the registration if its options are invalid', async () => {
    const app = fastify()
    onTestFinished(() => app.close())
    await expect(app.register(fastifyLimit, { capacity: -1, window: '1m' })).rejects.toThrow(
      expect.objectContaining({ code: 'FLUXGATE_RULES_INVALID' }),
    )
  })
})

describe('hono', () => {
  it('requires an address resolver where the runtime has no address, and otherwise shares one bucket', async () => {
    const app = new Hono<{ Bindings: { ip?: string } }>()
    app.use(honoLimit({ ...minute, remoteAddress: (context) => (context.env as { ip?: string }).ip }))
    app.get('/', () => Response.redirect('https://example.com/', 302))
    const from = async (ip?: string) => (await app.request('/', {}, ip === undefined ? {} : { ip })).status
    expect([await from('1.1.1.1'), await from('1.1.1.1'), await from('2.2.2.2')]).toEqual([302, 429, 302])
    expect([await from(), await from()]).toEqual([302, 429])
  })

  it('sets its headers on immutable responses too', async () => {
    const app = new Hono()
    app.use(honoLimit(minute))
    app.get('/', () => Response.redirect('https://example.com/', 302))
    const response = await app.request('/')
    expect([response.headers.get('x-ratelimit-limit'), response.headers.get('location')]).toEqual([
      '1',
      'https://example.com/',
    ])
  })
})

describe('koa', () => {
  it.each([
    [
      'ctx.throw',
      (context: Koa.Context) => context.throw(418, 'no coffee', { headers: { 'X-Own': 'yes' } }),
      418,
      'yes',
    ],
    ['a thrown error', () => Promise.reject(new Error('of the application')), 500, null],
  ] as const)('keeps the headers of all limits on the response to %s', async (_, fail, status, own) => {
    const app = new Koa()
    app.silent = true
    for (const capacity of [5, 3]) app.use(koaLimit({ id: `of-${capacity}`, capacity, window: '1m' }))
    app.use((context) => fail(context))
    const { headers, ...response } = await fetch(await served(app.callback())).then((answer) => ({
      status: answer.status,
      headers: answer.headers,
    }))
    expect([response.status, headers.get('x-own')]).toEqual([status, own])
    expect(headers.get('x-ratelimit-remaining')).toBe('2')
    expect(headers.get('ratelimit-policy')).toBe('"of-5.5-per-1m";q=5;w=60, "of-3.3-per-1m";q=3;w=60')
  })
})

describe('fetch', () => {
  it('rejects a call without the response if countWhen is set', async () => {
    const limit = fetchLimit({ ...minute, countWhen: () => true })
    await expect(limit(new Request('http://localhost/'))).rejects.toMatchObject({
      code: 'FLUXGATE_ARGUMENT_INVALID',
      message: expect.stringContaining('Use limit.wrap(handler).'),
    })
  })

  it('passes Response.error() through', async () => {
    const failed = Response.error()
    const handler = fetchLimit(minute).wrap(() => failed)
    expect(await handler(new Request('http://localhost/'))).toBe(failed)
    const app = new Hono()
    app.use(honoLimit(minute))
    app.get('/', () => Response.error())
    expect(await app.request('/')).toMatchObject({ type: 'error', status: 0 })
  })

  it('returns a response for rejected requests only', async () => {
    const limit = fetchLimit(minute)
    const request = () => new Request('http://localhost/')
    expect(await limit(request(), { remoteAddress: '1.1.1.1' })).toBeNull()
    const rejected = await limit(request(), { remoteAddress: '1.1.1.1' })
    expect([rejected?.status, rejected?.headers.get('retry-after')]).toEqual([429, '60'])
    expect(await limit(request(), { remoteAddress: '2.2.2.2:443' })).toBeNull()
    expect((await limit(request(), { remoteAddress: '2.2.2.2' }))?.status).toBe(429)
    expect(await limit(request())).toBeNull()
    expect((await limit(request()))?.status).toBe(429)
    await limit.close()
    expect((await limit(request()))?.status).toBe(503)
  })

  it("passes the runtime's arguments to a wrapped handler and reads the address from them", async () => {
    const limit = fetchLimit({
      ...minute,
      remoteAddress: (_request, info: { remoteAddr: { hostname: string } }) => info.remoteAddr.hostname,
    })
    const handler = limit.wrap((_request, info: { remoteAddr: { hostname: string } }) =>
      Response.redirect(`https://example.com/${info.remoteAddr.hostname}`, 302),
    )
    const from = (hostname: string) => handler(new Request('http://localhost/'), { remoteAddr: { hostname } })
    const response = await from('1.1.1.1')
    expect([response.headers.get('location'), response.headers.get('x-ratelimit-remaining')]).toEqual([
      'https://example.com/1.1.1.1',
      '0',
    ])
    expect((await from('1.1.1.1')).status).toBe(429)
    expect((await from('2.2.2.2')).status).toBe(302)
  })
})

describe('nest', () => {
  const get = (owner: { prototype: object }, name: string, ...more: ((...args: never[]) => void)[]) => {
    const method = Object.getOwnPropertyDescriptor(owner.prototype, name) as PropertyDescriptor
    for (const decorate of [Get(name), ...more] as ((...args: unknown[]) => void)[])
      decorate(owner.prototype, name, method)
  }

  it('can be overridden by controllers and methods; the closest decorator wins', async () => {
    const gate = await twoRuleSets()
    onTestFinished(() => gate.close())
    class Plain {
      usual() {
        return 'ok'
      }
      free() {
        return 'ok'
      }
      own() {
        return 'ok'
      }
    }
    get(Plain, 'usual')
    get(Plain, 'free', SkipRateLimit())
    get(Plain, 'own', RateLimit({ capacity: 7, window: '1m' }))
    Controller('plain')(Plain)
    class Base {}
    RateLimit({ ruleSetId: 'strict', permits: 2 })(Base)
    class Strict extends Base {
      inherited() {
        return 'ok'
      }
      nearer() {
        return 'ok'
      }
    }
    get(Strict, 'inherited')
    // Called in the way of standard decorators.
    get(Strict, 'nearer', (() => SkipRateLimit()(Strict.prototype.nearer, { kind: 'method' } as never)) as never)
    Controller('strict')(Strict)
    class Root {}
    const imports = [RateLimitModule.forRootAsync({ useFactory: async () => ({ gate }) })]
    Module({ imports, controllers: [Plain, Strict] })(Root)
    const app = await NestFactory.create(Root, { logger: false })
    onTestFinished(() => app.close())
    await app.listen(0, '127.0.0.1')
    const limitOf = async (path: string) => {
      const { status, headers } = await fetch(`${await app.getUrl()}/${path}`)
      return [status, headers.get('x-ratelimit-remaining'), headers.get('ratelimit-policy')]
    }
    expect(await limitOf('plain/usual')).toEqual([200, '99', '"r.100-per-1m";q=100;w=60'])
    expect(await limitOf('plain/free')).toEqual([200, null, null])
    expect(await limitOf('plain/own')).toEqual([200, '6', '"Plain.own.7-per-1m";q=7;w=60'])
    expect(await limitOf('strict/inherited')).toEqual([200, '1', '"s.3-per-1m";q=3;w=60'])
    expect((await limitOf('strict/inherited'))[0]).toBe(429)
    expect(await limitOf('strict/nearer')).toEqual([200, null, null])
  })

  it('passes the typed request of the platform to hooks', async () => {
    class Hooked {
      usual() {
        return 'ok'
      }
      own() {
        return 'ok'
      }
    }
    const free = (request: express.Request): boolean => request.get('x-free') === '1'
    get(Hooked, 'usual')
    get(Hooked, 'own', RateLimit({ capacity: 2, window: '1m', skip: free }))
    Controller()(Hooked)
    class Root {}
    Module({ imports: [RateLimitModule.forRoot({ ...minute, skip: free })], controllers: [Hooked] })(Root)
    const app = await NestFactory.create(Root, { logger: false })
    onTestFinished(() => app.close())
    await app.listen(0, '127.0.0.1')
    const url = await app.getUrl()
    expect(await statuses(`${url}/usual`, `${url}/usual`, `${url}/own`)).toEqual([200, 429, 200])
    expect((await fetch(`${url}/usual`, { headers: { 'x-free': '1' } })).status).toBe(200)
  })

  it('warns once of calls that it does not limit', async () => {
    const logged: string[] = []
    const guard = new RateLimitGuard({
      ...minute,
      logger: { warn: (message, { code }) => logged.push(`${code} ${message}`) },
    })
    const context = {
      getType: () => 'rpc',
      getHandler: () => ({ name: 'handler' }),
      getClass: () => ({ name: 'Class' }),
      getArgs: () => [],
      switchToHttp: () => {
        throw new Error('not HTTP')
      },
    }
    expect([await guard.canActivate(context), await guard.canActivate(context)]).toEqual([true, true])
    expect(logged).toEqual([
      'FLUXGATE_RUNTIME_UNSUPPORTED RateLimitGuard does not limit calls of the type "rpc". Use a guard with gate.check(). See docs/reference/errors.md.',
    ])
    await guard.close()
  })
})

describe('node', () => {
  it('passes node:http requests and responses to listeners and hooks', async () => {
    const limit = nodeLimit({ ...minute, skip: ({ rawHeaders }) => rawHeaders.includes('x-free') })
    const url = await served(limit((request, response) => response.writeHead(204, { 'x-url': request.url }).end()))
    expect(await statuses(url, url)).toEqual([204, 429])
    expect((await fetch(url, { headers: { 'x-free': '1' } })).headers.get('x-url')).toBe('/')
  })

  it('limits HTTP/2 too', async () => {
    const limit = nodeLimit<Http2ServerRequest>(minute)
    const server = createHttp2Server(
      limit((_: Http2ServerRequest, response: Http2ServerResponse) => response.end('ok')),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const client = connectHttp2(`http://127.0.0.1:${portOf(server)}`)
    onTestFinished(() => {
      client.destroy()
      server.close()
    })
    const ask = async () => {
      const [headers] = await once(client.request({ ':path': '/' }).resume(), 'response')
      return [headers[':status'], headers['x-ratelimit-remaining'], headers['content-type']]
    }
    expect(await ask()).toEqual([200, '0', undefined])
    expect(await ask()).toEqual([429, '0', 'application/problem+json'])
  })

  it('leaves a synchronous exception of a listener uncaught, as without a limit', async () => {
    const source = `
      import { createServer, get } from 'node:http'
      import { rateLimit } from 'fluxgate-js/node'
      const server = createServer(rateLimit({ capacity: 5, window: '1m' })(() => { throw new TypeError('of the application') }))
      process.once('uncaughtException', (error, origin) => {
        console.log(error.message, origin)
        process.exit(0)
      })
      server.listen(0, '127.0.0.1', () => get({ port: server.address().port, host: '127.0.0.1' }))
    `
    const printed = await new Promise<string>((resolve) => {
      execFile(process.execPath, ['--input-type=module', '-e', source], (_error, stdout) => resolve(stdout))
    })
    expect(printed).toBe('of the application uncaughtException\n')
  })

  it('refunds a pipelined request whose client disconnects', async () => {
    const clock = manualClock(0)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }, { clock })
    const node = adapters.find(({ name }) => name === 'node') as Adapter
    const bed = await startBed(node, [{ gate, clock }])
    const socket = connect(bed.port, '127.0.0.1')
    socket.write(
      'GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n',
    )
    await eventually('held', async () => (await gate.health()).waiting === 2)
    socket.destroy()
    await eventually('gone', async () => (await gate.health()).waiting === 0)
    const left = async () => (await gate.check({ clientIp: '127.0.0.1' }, { peek: true })).remaining
    await eventually('given back', async () => (await left()) === 3)
  })
})

describe('options', () => {
  it.each([
    [{ capacity: 1, window: '1m', headers: 'all' }, /headers: must be .*standard.*; received "all"/],
    [{ capacity: 1, window: '1m', custmize: () => undefined }, /unknown field "custmize"; did you mean customize\?/],
    [{ capacity: 1, window: '1m', ruleSetId: 'api' }, /unknown field "ruleSetId"/],
    [{ capacity: 1, window: '1m', permits: 0 }, /permits: .*an integer/],
    [{ capacity: 1, window: '1m', ipv6Prefix: 129 }, /ipv6Prefix: .*from 1 to 128/],
    [{ capacity: 1, window: '1m', maxConcurrentWaits: -1 }, /maxConcurrentWaits: /],
    [{ capacity: 1, window: '1m', excludePatterns: ['/{a'] }, /excludePatterns\[0\]/],
    [{ capacity: 1, window: '1m', userIdHeader: 'no header' }, /userIdHeader: .*a header name/],
    [{ handler: {} }, /handler: .*a gate/],
    [{ handler: { check: async () => ({}) }, capacity: 5 }, /capacity: must not be combined with handler/],
    [{ capacity: 1 }, /window/],
    [{}, /capacity/],
    [undefined, /options such as/],
  ])('%j are rejected with a validation error', (options, message) => {
    expect(() => nodeLimit(options as never)).toThrow(message)
    expect(() => nodeLimit(options as never)).toThrow(expect.objectContaining({ name: 'FluxGateError' }))
  })

  it('are validated for Hono and fetch handlers too', () => {
    expect(() => honoLimit(undefined as never)).toThrow(/options such as/)
    expect(() => fetchLimit(undefined as never)).toThrow(/options such as/)
  })
})
