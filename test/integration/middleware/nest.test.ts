/** Requests that reach no guard of Nest: 404 and preflight requests, on both platforms. */
import type { IncomingMessage } from 'node:http'
import { Controller, Get, type INestApplication, Module, Next, Options } from '@nestjs/common'
import { HttpAdapterHost, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { Test } from '@nestjs/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RateLimitOptions } from '../../../src/middleware/limits/create-guard.js'
import { RateLimit, RateLimitGuard, RateLimitModule, SkipRateLimit } from '../../../src/middleware/nest.js'
import { type Answer, beginAt, type Question } from './test-app.js'
import 'reflect-metadata'

const platforms = [
  { name: 'express', adapter: () => new ExpressAdapter() },
  { name: 'fastify', adapter: () => new FastifyAdapter() },
] as const

const hour = (capacity: number) => ({ capacity, window: '1h' }) as const
const preflight = { Origin: 'https://example.com', 'Access-Control-Request-Method': 'GET' }

type Decorate = (...given: unknown[]) => void
const route = (owner: { prototype: object }, name: string, ...decorators: unknown[]): void => {
  const method = Object.getOwnPropertyDescriptor(owner.prototype, name) as PropertyDescriptor
  for (const decorate of decorators as Decorate[]) decorate(owner.prototype, name, method)
}

function rootOf(limits: readonly RateLimitOptions[], ...more: unknown[]) {
  class Routes {
    usual() {
      return 'ok'
    }
    own() {
      return 'ok'
    }
    free() {
      return 'ok'
    }
    usualOptions() {
      return 'ok'
    }
    freeOptions() {
      return 'ok'
    }
  }
  route(Routes, 'usual', Get(['usual', 'items/:id']))
  route(Routes, 'own', Get('own'), RateLimit(hour(50)))
  route(Routes, 'free', Get('free'), SkipRateLimit())
  route(Routes, 'usualOptions', Options('usual'))
  route(Routes, 'freeOptions', Options('free'), SkipRateLimit())
  Controller()(Routes)
  class Root {}
  const imports = [...limits.map((limit) => RateLimitModule.forRoot(limit)), ...(more as [])]
  Module({ imports, controllers: [Routes] })(Root)
  return Root
}

/** Starts an application for one test. */
async function started(app: INestApplication) {
  onTestFinished(() => app.close())
  await app.listen(0, '127.0.0.1')
  const { port } = app.getHttpServer().address()
  return (question: Question): Promise<Answer> => beginAt(port, question).answer
}

const statusAndRemaining = ({ status, headers }: Answer) => [status, headers['x-ratelimit-remaining']]

describe.each(platforms)('nest on $name', ({ adapter }) => {
  const create = (limits: readonly RateLimitOptions[], options: object = {}) =>
    NestFactory.create(rootOf(limits), adapter(), { logger: false, ...options })

  it('limits requests without a route', async () => {
    const ask = await started(await create([hour(3)]))
    expect(statusAndRemaining(await ask({ path: '/usual' }))).toEqual([200, '2'])
    expect(statusAndRemaining(await ask({ path: '/missing' }))).toEqual([404, '1'])
    expect(statusAndRemaining(await ask({ path: '/usual', method: 'POST', body: 'a=b' }))).toEqual([404, '0'])
    const { status, headers, text } = await ask({ path: '/missing?again' })
    expect([status, headers['content-type'], headers['ratelimit-policy']]).toEqual([
      429,
      expect.stringMatching(/^application\/problem\+json\b/),
      '"limit.3-per-1h";q=3;w=3600',
    ])
    expect(Number(headers['retry-after'])).toBeGreaterThan(1000)
    expect(JSON.parse(text)).toMatchObject({ status: 429, 'violated-policies': ['limit.3-per-1h'] })
    expect(statusAndRemaining(await ask({ path: '/usual' }))).toEqual([429, '0'])
  })

  it.each([
    ['app.enableCors()', {}, (app: INestApplication) => app.enableCors()],
    ['the option cors', { cors: true }, () => {}],
  ])('limits preflight requests that are answered because of %s', async (_, options, enable) => {
    const app = await create([hour(2)], options)
    enable(app)
    const ask = await started(app)
    const allowed = await ask({ path: '/usual', method: 'OPTIONS', headers: preflight })
    expect([...statusAndRemaining(allowed), allowed.headers['access-control-allow-origin']]).toEqual([204, '1', '*'])
    expect(statusAndRemaining(await ask({ path: '/missing', method: 'OPTIONS', headers: preflight }))).toEqual([
      204,
      '0',
    ])
    const { status, headers, text } = await ask({ path: '/usual', method: 'OPTIONS', headers: preflight })
    expect([status, headers['content-type'], headers['content-length']]).toEqual([
      429,
      expect.stringMatching(/^application\/problem\+json\b/),
      String(Buffer.byteLength(text)),
    ])
    expect(JSON.parse(text)).toMatchObject({ status: 429, 'violated-policies': ['limit.2-per-1h'] })
    expect(statusAndRemaining(await ask({ path: '/usual', method: 'OPTIONS' }))).toEqual([429, '0'])
    expect(statusAndRemaining(await ask({ path: '/usual', headers: preflight }))).toEqual([429, '0'])
  })

  it('leaves routes with their own limit, or none, to their guards', async () => {
    const ask = await started(await create([hour(9)]))
    expect(statusAndRemaining(await ask({ path: '/own' }))).toEqual([200, '49'])
    expect(statusAndRemaining(await ask({ path: '/free' }))).toEqual([200, undefined])
    expect(statusAndRemaining(await ask({ path: '/free', method: 'OPTIONS', headers: preflight }))).toEqual([
      200,
      undefined,
    ])
    expect(statusAndRemaining(await ask({ path: '/usual', method: 'OPTIONS', headers: preflight }))).toEqual([200, '8'])
    expect(statusAndRemaining(await ask({ path: '/missing' }))).toEqual([404, '7'])
    expect(statusAndRemaining(await ask({ path: '/items/1' }))).toEqual([200, '6'])
    expect(statusAndRemaining(await ask({ path: '/items/' }))).toEqual([404, '5'])
  })

  it('counts a preflight request once if CORS passes it to a route', async () => {
    const app = await create([hour(9)])
    app.enableCors({ preflightContinue: true })
    const ask = await started(app)
    expect(statusAndRemaining(await ask({ path: '/usual', method: 'OPTIONS', headers: preflight }))).toEqual([200, '8'])
    expect(statusAndRemaining(await ask({ path: '/free', method: 'OPTIONS', headers: preflight }))).toEqual([
      200,
      undefined,
    ])
    expect(statusAndRemaining(await ask({ path: '/usual' }))).toEqual([200, '7'])
  })

  it('counts a preflight request once if a CORS callback passes it to a route', async () => {
    const app = await create([hour(9)])
    app.enableCors((_request: unknown, callback: (error: null, options: object) => void) =>
      callback(null, { preflightContinue: true }),
    )
    const ask = await started(app)
    expect(statusAndRemaining(await ask({ path: '/usual', method: 'OPTIONS', headers: preflight }))).toEqual([200, '8'])
    expect(statusAndRemaining(await ask({ path: '/usual' }))).toEqual([200, '7'])
  })

  it('applies paths, patterns and hooks', async () => {
    const asked: string[] = []
    const skip = (request: unknown) => {
      const { url, headers } = request as IncomingMessage
      asked.push(String(url))
      return 'x-free' in headers
    }
    const app = await create([{ ...hour(9), path: '/api/**', excludePatterns: ['/api/health'], skip, permits: 2 }])
    app.enableCors()
    const ask = await started(app)
    expect(statusAndRemaining(await ask({ path: '/other' }))).toEqual([404, undefined])
    expect(statusAndRemaining(await ask({ path: '/api/health' }))).toEqual([404, undefined])
    expect(statusAndRemaining(await ask({ path: '/other', method: 'OPTIONS', headers: preflight }))).toEqual([
      204,
      undefined,
    ])
    expect(statusAndRemaining(await ask({ path: '/api/a', headers: { 'X-Free': '1' } }))).toEqual([404, undefined])
    expect(statusAndRemaining(await ask({ path: '/api/a' }))).toEqual([404, '7'])
    expect(statusAndRemaining(await ask({ path: '/api/a', method: 'OPTIONS', headers: preflight }))).toEqual([204, '5'])
    expect(asked).toEqual(['/other', '/other', '/api/a', '/api/a', '/api/a'])
  })

  it('responds with 500 if a hook fails, and keeps running', async () => {
    const customize = (_: unknown, request: unknown) => {
      if ('x-fail' in (request as IncomingMessage).headers) throw new RangeError('customize failed')
      return undefined
    }
    const app = await create([{ ...hour(9), customize }])
    app.enableCors()
    const ask = await started(app)
    const failing = { ...preflight, 'X-Fail': '1' }
    for (const method of ['GET', 'OPTIONS'])
      expect(statusAndRemaining(await ask({ path: '/missing', method, headers: failing }))).toEqual([500, undefined])
    expect(statusAndRemaining(await ask({ path: '/missing' }))).toEqual([404, '8'])
  })

  it('applies several limits in order, each once', async () => {
    const app = await create([
      { ...hour(2), id: 'first' },
      { ...hour(5), id: 'second' },
    ])
    app.enableCors()
    const ask = await started(app)
    const policies = '"first.2-per-1h";q=2;w=3600, "second.5-per-1h";q=5;w=3600'
    const missing = await ask({ path: '/missing' })
    expect([...statusAndRemaining(missing), missing.headers['ratelimit-policy']]).toEqual([404, '1', policies])
    const preflown = await ask({ path: '/usual', method: 'OPTIONS', headers: preflight })
    expect([...statusAndRemaining(preflown), preflown.headers['ratelimit-policy']]).toEqual([204, '0', policies])
    for (const method of ['GET', 'OPTIONS']) {
      const { status, text } = await ask({ path: '/missing', method, headers: preflight })
      expect([status, JSON.parse(text)['violated-policies']]).toEqual([429, ['first.2-per-1h']])
    }
  })

  it('limits paths outside the global prefix', async () => {
    const app = await create([hour(2)])
    app.setGlobalPrefix('api')
    const ask = await started(app)
    expect(statusAndRemaining(await ask({ path: '/usual' }))).toEqual([404, '1'])
    expect(statusAndRemaining(await ask({ path: '/api/missing' }))).toEqual([404, '0'])
    expect(statusAndRemaining(await ask({ path: '/usual' }))).toEqual([429, '0'])
  })

  it('limits applications of @nestjs/testing, which get their adapter late', async () => {
    const testing = await Test.createTestingModule({ imports: [rootOf([hour(2)])] }).compile()
    const app = testing.createNestApplication(adapter(), { logger: false })
    app.enableCors()
    const ask = await started(app)
    expect(statusAndRemaining(await ask({ path: '/missing' }))).toEqual([404, '1'])
    expect(statusAndRemaining(await ask({ path: '/missing', method: 'OPTIONS', headers: preflight }))).toEqual([
      204,
      '0',
    ])
    expect(statusAndRemaining(await ask({ path: '/missing' }))).toEqual([429, '0'])
  })

  it('limits such requests for a guard without the module, if configured', async () => {
    const guard = new RateLimitGuard(hour(2))
    onTestFinished(() => guard.close())
    const app = await create([])
    app.useGlobalGuards(guard)
    guard.limitUnguarded(app.getHttpAdapter())
    app.enableCors()
    const ask = await started(app)
    expect(statusAndRemaining(await ask({ path: '/usual' }))).toEqual([200, '1'])
    expect(statusAndRemaining(await ask({ path: '/missing', method: 'OPTIONS', headers: preflight }))).toEqual([
      204,
      '0',
    ])
    expect(statusAndRemaining(await ask({ path: '/missing' }))).toEqual([429, '0'])
  })
})

describe('nest on express', () => {
  it('counts a request once if a route calls next and no other handles it', async () => {
    class Hands {
      on(next: () => void) {
        next()
      }
    }
    route(Hands, 'on', Get('on'))
    ;(Next() as Decorate)(Hands.prototype, 'on', 0)
    Controller()(Hands)
    class Root {}
    Module({ imports: [RateLimitModule.forRoot(hour(9))], controllers: [Hands] })(Root)
    const ask = await started(await NestFactory.create(Root, { logger: false }))
    expect(statusAndRemaining(await ask({ path: '/on' }))).toEqual([404, '8'])
    expect(statusAndRemaining(await ask({ path: '/missing' }))).toEqual([404, '7'])
  })

  it('replaces and removes named limits on methods and controllers', async () => {
    class Named {
      usual() {
        return 'ok'
      }
      slow() {
        return 'ok'
      }
      poll() {
        return 'ok'
      }
    }
    route(Named, 'usual', Get('usual'))
    route(Named, 'slow', Get('slow'), RateLimit({ burst: { capacity: 1, window: '10s' } }))
    route(Named, 'poll', Get('poll'), SkipRateLimit('burst'))
    Controller()(Named)
    class Root {}
    const limits = { burst: { capacity: 5, window: '1s' }, total: hour(9) }
    const useFactory = async () => ({ limits })
    Module({ imports: [RateLimitModule.forRootAsync({ useFactory })], controllers: [Named] })(Root)
    const ask = await started(await NestFactory.create(Root, { logger: false }))
    const policies = async (path: string) => {
      const { headers } = await ask({ path })
      return [headers['ratelimit-policy'], /"total\S+;r=(\d+)/.exec(String(headers.ratelimit))?.[1]]
    }
    const total = '"total.9-per-1h";q=9;w=3600'
    expect(await policies('/usual')).toEqual([`"burst.5-per-1s";q=5;w=1, ${total}`, undefined])
    expect(await policies('/slow')).toEqual([`"burst.1-per-10s";q=1;w=10, ${total}`, undefined])
    expect(await policies('/poll')).toEqual([total, '6'])
  })

  it('ignores requests that other modules answer before Nest', async () => {
    class Files {
      static host: HttpAdapterHost
      onModuleInit() {
        const answer = (_: unknown, response: { end(text: string): void }) => response.end('file')
        Files.host.httpAdapter.use('/files', answer)
      }
    }
    Module({})(Files)
    const app = await NestFactory.create(rootOf([hour(9)], Files), { logger: false })
    Files.host = app.get(HttpAdapterHost)
    const ask = await started(app)
    expect(statusAndRemaining(await ask({ path: '/files/a' }))).toEqual([200, undefined])
    expect(statusAndRemaining(await ask({ path: '/missing' }))).toEqual([404, '8'])
  })
})

it('starts applications without an HTTP server', async () => {
  const app = await NestFactory.createApplicationContext(rootOf([hour(1)]), { logger: false })
  expect(app.get(RateLimitGuard, { strict: false })).toBeInstanceOf(RateLimitGuard)
  await app.close()
})
