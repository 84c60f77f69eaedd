/** Limits of routes, controllers and methods: which requests share a bucket, in one process and in several. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type FastifyInstance, fastify } from 'fastify'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit } from '../../../src/middleware/fastify.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const { uri } = sharedRedis()

describe('fastify', () => {
  let client: Redis
  beforeAll(() => {
    client = new Redis(uri)
  })
  afterAll(() => client.disconnect())

  const own = { config: { rateLimit: { capacity: 3, window: '1h' } } as object }
  const ok = () => 'ok'

  /** An application in which only routes are limited, in Redis. */
  async function start(
    prefix: string,
    define: (app: FastifyInstance) => void,
    { before = false, ...options }: { before?: boolean; exposeHeadRoutes?: boolean } = {},
  ): Promise<(method: string, url: string, headers?: Record<string, string>) => Promise<unknown>> {
    const app = fastify(options)
    onTestFinished(() => app.close())
    const store = redisStore(client, { prefix, timeoutMs: 20_000 })
    if (before) define(app)
    await app.register(rateLimit, { enabled: false, capacity: 1, window: '1h', store })
    if (!before) define(app)
    return async (method, url, headers = {}) => {
      const answer = await app.inject({ method: method as 'GET', url, headers })
      return answer.headers['x-ratelimit-remaining'] ?? answer.statusCode
    }
  }

  it.each([false, true])(
    'gives routes that share a config a bucket each (routes before the plugin: %s)',
    async (before) => {
      const left = await start(
        freshPrefix(),
        (app) => {
          app.get('/a/b', own, ok)
          app.get('/a.b', own, ok)
          app.post('/a/b', own, ok)
          app.get('/a/:id', own, ok)
        },
        { before },
      )
      expect([await left('GET', '/a/b'), await left('GET', '/a/b'), await left('GET', '/a.b')]).toEqual(['2', '1', '2'])
      expect([await left('POST', '/a/b'), await left('GET', '/a/1'), await left('GET', '/a/2')]).toEqual([
        '2',
        '2',
        '1',
      ])
    },
  )

  it('shares the bucket of a route between applications, whichever is called first', async () => {
    const prefix = freshPrefix()
    const routes = ['/a', '/b', '/c']
    const define = (urls: readonly string[]) => (app: FastifyInstance) => {
      for (const url of urls) app.get(url, { config: { rateLimit: { capacity: 3, window: '1h' } } as object }, ok)
    }
    const one = await start(prefix, define(routes))
    const other = await start(prefix, define(routes.toReversed()))
    expect([await one('GET', '/a'), await other('GET', '/b'), await other('GET', '/a')]).toEqual(['2', '2', '1'])
    expect([await one('GET', '/b'), await one('GET', '/c'), await other('GET', '/a')]).toEqual(['1', '2', '0'])
    expect(await one('GET', '/a')).toBe('0')
  })

  it.each([false, true])(
    'counts the HEAD route that Fastify adds as its GET route (routes before the plugin: %s)',
    async (before) => {
      const left = await start(
        freshPrefix(),
        (app) => {
          app.get('/a', own, ok)
          app.get('/b', own, ok)
          app.route({ method: ['GET', 'POST'], url: '/several', ...own, handler: ok })
        },
        { before },
      )
      expect([await left('HEAD', '/a'), await left('GET', '/a'), await left('HEAD', '/a')]).toEqual(['2', '1', '0'])
      expect([await left('GET', '/b'), await left('HEAD', '/b')]).toEqual(['2', '1'])
    },
  )

  it('counts an explicit HEAD route separately', async () => {
    const explicit = await start(
      freshPrefix(),
      (app) => {
        app.get('/a', own, ok)
        app.head('/a', own, ok)
      },
      { exposeHeadRoutes: false },
    )
    expect([await explicit('HEAD', '/a'), await explicit('GET', '/a'), await explicit('HEAD', '/a')]).toEqual([
      '2',
      '2',
      '1',
    ])
    const first = await start(freshPrefix(), (app) => {
      app.head('/a', own, ok)
      app.get('/a', own, ok)
    })
    expect([await first('HEAD', '/a'), await first('GET', '/a'), await first('HEAD', '/a')]).toEqual(['2', '2', '1'])
  })

  it('has one limit for a route with several methods, and for its HEAD', async () => {
    const left = await start(freshPrefix(), (app) => {
      app.route({ method: ['GET', 'POST'], url: '/several', ...own, handler: ok })
      app.put('/several', own, ok)
      app.all('/all', own, ok)
      app.all('/all/others', own, ok)
    })
    expect([await left('GET', '/several'), await left('POST', '/several'), await left('HEAD', '/several')]).toEqual([
      '2',
      '1',
      '0',
    ])
    expect(await left('PUT', '/several')).toBe('2')
    expect([await left('GET', '/all'), await left('DELETE', '/all'), await left('GET', '/all/others')]).toEqual([
      '2',
      '1',
      '2',
    ])
  })

  it('uses the whole URL of a route in a plugin with a prefix', async () => {
    const plugin = async (app: FastifyInstance) => {
      app.get('/', own, ok)
      app.get('/items', own, ok)
    }
    const left = await start(freshPrefix(), (app) => {
      app.register(plugin, { prefix: '/one' })
      app.register(plugin, { prefix: '/two' })
    })
    expect([await left('GET', '/one/items'), await left('GET', '/two/items')]).toEqual(['2', '2'])
    // The root route of a prefix responds with and without a trailing slash.
    expect([await left('GET', '/one'), await left('HEAD', '/one/'), await left('GET', '/one/')]).toEqual([
      '2',
      '1',
      '0',
    ])
    expect(await left('GET', '/two/')).toBe('2')
  })

  it('gives routes with different constraints separate buckets', async () => {
    const left = await start(freshPrefix(), (app) => {
      for (const version of ['1.0.0', '2.0.0']) app.get('/a', { ...own, constraints: { version } }, ok)
    })
    const version = (version: string) => ({ 'accept-version': version })
    expect([await left('GET', '/a', version('1.0.0')), await left('GET', '/a', version('2.0.0'))]).toEqual(['2', '2'])
    expect(await left('HEAD', '/a', version('2.0.0'))).toBe('1')
  })

  it('gives copies of a route separate buckets', async () => {
    const left = await start(freshPrefix(), (app) => {
      app.addHook('onRoute', (route) => {
        if (route.url === '/a' && route.method === 'GET') app.route({ ...route, url: '/alias' })
      })
      app.get('/a', own, ok)
    })
    expect([await left('GET', '/a'), await left('GET', '/alias'), await left('HEAD', '/alias')]).toEqual([
      '2',
      '2',
      '1',
    ])
  })

  it('shares a bucket between routes whose limits have the same id', async () => {
    const named = () => ({ config: { rateLimit: { id: 'uploads', capacity: 3, window: '1h' } } as object })
    const left = await start(freshPrefix(), (app) => {
      app.get('/a', named(), ok)
      app.get('/b', named(), ok)
    })
    expect([await left('GET', '/a'), await left('GET', '/b')]).toEqual(['2', '1'])
  })

  it('limits parts of an application with separate plugins', async () => {
    const app = fastify()
    onTestFinished(() => app.close())
    const prefix = freshPrefix()
    for (const name of ['/one', '/two']) {
      app.register(
        async (part) => {
          const store = redisStore(client, { prefix, timeoutMs: 20_000 })
          await part.register(rateLimit, { enabled: false, capacity: 1, window: '1h', store })
          part.get('/a', own, ok)
        },
        { prefix: name },
      )
    }
    const left = async (url: string) => (await app.inject({ url })).headers['x-ratelimit-remaining']
    expect([await left('/one/a'), await left('/two/a'), await left('/one/a')]).toEqual(['2', '2', '1'])
  })
})

describe('nest, in two processes', () => {
  const prefix = freshPrefix()
  let urls: string[]
  const children: ReturnType<typeof spawn>[] = []
  beforeAll(async () => {
    urls = await Promise.all(
      [1, 2].map(async () => {
        const program = ['test/integration/middleware/nest-server.mjs', uri, prefix]
        const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
        children.push(child)
        const [url] = (await once(createInterface(child.stdout), 'line')) as [string]
        return url
      }),
    )
  })
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
  })

  /** Statuses of requests in order: the index of the process and the path. */
  async function statuses(...requests: readonly (readonly [number, string])[]): Promise<number[]> {
    const found: number[] = []
    for (const [process, path] of requests) found.push((await fetch(`${urls[process]}/${path}`)).status)
    return found
  }

  it('a limit of a class applies to all its methods together, whichever is called first', async () => {
    const first = await statuses([0, 'people/list'], [1, 'people/find'], [0, 'people/find'], [1, 'people/list'])
    expect(first).toEqual([200, 200, 200, 200])
    const more = await statuses([0, 'people/list'], [1, 'people/list'], [0, 'people/find'], [1, 'people/find'])
    expect(more).toEqual([429, 429, 429, 429])
  })

  it('a limit of a method applies to that method only', async () => {
    const requests = [0, 1, 0, 1].map((process) => [process, 'people/export'] as const)
    expect(await statuses(...requests)).toEqual([200, 200, 200, 429])
  })

  it('classes with the same name have separate limits, even with the same path', async () => {
    for (const [i, path] of ['internal/users', 'external/users', 'users'].entries()) {
      const one = i % 2
      const asked = [0, 1, 0, 1].map((turn) => [(turn + one) % 2, `${path}/list`] as const)
      expect(await statuses(...asked, [one, `${path}/find`])).toEqual([200, 200, 200, 200, 429])
      expect(await statuses([0, `${path}/export`], [1, `${path}/export`])).toEqual([200, 200])
    }
  })

  it('controllers that inherit a limit have separate limits', async () => {
    const first = await statuses([0, 'first/inherited'], [1, 'first/inherited'], [0, 'first/inherited'])
    const second = await statuses([1, 'second/inherited'], [0, 'second/inherited'], [1, 'second/inherited'])
    expect([first, second]).toEqual([
      [200, 200, 429],
      [200, 200, 429],
    ])
  })
})
