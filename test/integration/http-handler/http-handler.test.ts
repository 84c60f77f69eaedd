import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RequestContext } from '../../../src/core/request-context.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { HttpHandler, type HttpHandlerOptions } from '../../../src/handlers/index.js'
import { createServer, type ServerOptions } from '../../../src/program/create-server.js'
import { type HandlerFactory, handlerContract, manualClock } from '../../../src/testing/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { selfSigned } from '../../servers/self-signed.js'

const standalone: HandlerFactory = async ({ ruleSets, clock }) => {
  const gate = await createFluxGate({ rules: { ruleSets } as never, clock })
  return { handler: gate, close: () => gate.close() }
}

const remote: HandlerFactory = async (given) => {
  const { handler: gate, close } = await standalone(given)
  const server = createServer({ gate: gate as never })
  const { url } = await server.listen({ port: 0 })
  const handler = new HttpHandler({ url, clock: given.clock })
  return {
    handler,
    async close() {
      await handler.close()
      await server.close()
      await close()
    },
  }
}

describe('a handler in this process', () => handlerContract(it, standalone))

describe('a handler that uses a server', () => handlerContract(it, remote))

const rule = (more: object) => ({ id: 'a', limitScope: 'GLOBAL', bands: [{ capacity: 10, window: '1h' }], ...more })

/** A server with one rule, and a handler that uses it. */
async function bed(more: object, options: Partial<HttpHandlerOptions> = {}, serving: Partial<ServerOptions> = {}) {
  const gate = await createFluxGate({ rules: { ruleSets: [{ id: 'api', rules: [rule(more)] }] } as never })
  const server = createServer({ gate, ...serving })
  const { url } = await server.listen({ port: 0 })
  const errors: unknown[] = []
  const handler = new HttpHandler({ url, timeoutMs: 20_000, onError: (error) => errors.push(error), ...options })
  onTestFinished(async () => {
    await handler.close()
    await server.close()
    await gate.close()
  })
  return { gate, url, handler, errors }
}

/** A server that allows every request and records what it received. */
async function recorder() {
  const asked: { url: string; headers: NodeJS.Dict<string | string[]>; body: unknown }[] = []
  let connections = 0
  const yes = {
    ...{ allowed: true, delayMs: 0, reason: 'ALLOWED', ruleSetId: null, ruleId: null, band: null, key: null, limit: 1 },
    ...{ remaining: 0, retryAfterMs: 0, resetAt: 1, policy: 'REJECT', degraded: false, bands: [] },
  }
  const server = createHttpServer((incoming, response) => {
    let text = ''
    incoming.setEncoding('utf8').on('data', (piece) => {
      text += piece
    })
    incoming.on('end', () => {
      const body = JSON.parse(text) as { checks?: unknown[] }
      asked.push({ url: incoming.url ?? '', headers: incoming.headers, body })
      response.end(JSON.stringify(body.checks ? { decisions: body.checks.map(() => yes) } : yes))
    })
  })
  server.on('connection', () => {
    connections += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const handlerOf = (options: Partial<HttpHandlerOptions> = {}, path = ''): HttpHandler => {
    const { port } = server.address() as AddressInfo
    const handler = new HttpHandler({ url: `http://127.0.0.1:${port}${path}`, timeoutMs: 20_000, ...options })
    onTestFinished(async () => {
      await handler.close()
      server.close()
    })
    return handler
  }
  return { asked, handlerOf, connections: () => connections }
}

describe('requests to the server', () => {
  it('batch the decisions of one turn, at most a thousand, over kept-alive connections', async () => {
    const { asked, handlerOf, connections } = await recorder()
    const handler = handlerOf()
    await handler.check({ path: '/one' })
    await Promise.all(Array.from({ length: 10 }, () => handler.check({ path: '/ten' })))
    for (let i = 0; i < 20; i++) await handler.check({ path: '/later' })
    expect(asked.map(({ url }) => url).slice(0, 3)).toEqual([
      '/api/ratelimit/check',
      '/api/ratelimit/check/batch',
      '/api/ratelimit/check',
    ])
    expect(asked.length).toBe(22)
    expect(connections()).toBe(1)
    asked.length = 0
    await Promise.all(Array.from({ length: 2_001 }, () => handler.check({})))
    const sizes = asked.map(({ body }) => (body as { checks?: unknown[] }).checks?.length ?? 1)
    expect(sizes.sort((a, b) => b - a)).toEqual([1_000, 1_000, 1])
  })

  it('add no listeners to a reused connection', async () => {
    const warnings: string[] = []
    const note = ({ name }: Error) => void warnings.push(name)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const { handlerOf, connections } = await recorder()
    const handler = handlerOf()
    // Node.js warns about the eleventh listener for one event.
    for (let i = 0; i < 30; i++) await handler.check({ path: '/again' })
    expect(connections()).toBe(1)
    expect(warnings).toEqual([])
  })

  it('never exceed the largest batch that a server accepts', async () => {
    const { asked, handlerOf } = await recorder()
    const attributes = { text: 'x'.repeat(100_000) }
    await Promise.all(Array.from({ length: 20 }, () => handlerOf().check({ attributes })))
    for (const { body } of asked) expect(JSON.stringify(body).length).toBeLessThan(2 ** 20)
  })

  it('contain no secrets of the request unless they are named', async () => {
    const { asked, handlerOf } = await recorder()
    const headers = {
      authorization: 'Bearer x',
      cookie: 'a=b',
      'proxy-authorization': 'y',
      'x-app': 'ios',
      accept: '*',
    }
    await handlerOf().check({ headers })
    await handlerOf({ headers: ['X-App', 'Authorization'] }).check({ headers })
    expect(asked.map(({ body }) => (body as RequestContext).headers)).toEqual([
      { 'x-app': 'ios', accept: '*' },
      { authorization: 'Bearer x', 'x-app': 'ios' },
    ])
  })

  it('contain no secrets in any letter case', async () => {
    const { asked, handlerOf } = await recorder()
    const headers = { Authorization: 'Bearer x', COOKIE: 'a=b', 'Proxy-Authorization': 'y', 'X-App': 'ios' }
    await handlerOf().check({ headers })
    await handlerOf({ headers: ['x-app', 'cookie'] }).check({ headers })
    expect(asked.map(({ body }) => (body as RequestContext).headers)).toEqual([
      { 'X-App': 'ios' },
      { COOKIE: 'a=b', 'X-App': 'ios' },
    ])
  })

  it('are not sent if headers is not an object of names', async () => {
    const { asked, handlerOf } = await recorder()
    await expect(handlerOf().check({ headers: new Headers({ 'x-app': 'ios' }) as never })).rejects.toMatchObject({
      code: 'FLUXGATE_ARGUMENT_INVALID',
    })
    expect(asked).toEqual([])
  })

  it('have the path of the URL as prefix and the token in a header', async () => {
    const { asked, handlerOf } = await recorder()
    await handlerOf({ token: 'secret' }, '/limits/').refund({ userId: 'ann' }, { permits: 2 })
    expect(asked).toMatchObject([
      {
        url: '/limits/api/ratelimit/refund',
        headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
        body: { userId: 'ann', permits: 2 },
      },
    ])
  })
})

describe('a request that exceeds the limits of the server', () => {
  const huge = 'x'.repeat(9_000)
  it.each<[string, RequestContext, object]>([
    ['a long path', { path: `/api/${huge}` }, { path: '/api/**' }],
    ['a long API key', { apiKey: huge }, { limitScope: 'API_KEY' }],
    ['a long user', { userId: huge }, { limitScope: 'USER_ID' }],
    ['a long address', { clientIp: huge }, { limitScope: 'IP' }],
    ['a long method', { method: huge }, {}],
    ['a long header', { headers: { a: huge, b: [huge] } }, {}],
    ['many headers', { headers: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`h${i}`, 'x'])) }, {}],
  ])('is limited nevertheless: %s', async (_, context, more) => {
    const { handler, errors } = await bed({ ...more, bands: [{ capacity: 1, window: '1h' }] })
    expect(await handler.check(context)).toMatchObject({ allowed: true, degraded: false })
    expect(await handler.check(context)).toMatchObject({ allowed: false, degraded: false, reason: 'LIMITED' })
    expect(errors).toEqual([])
  })

  it('does not affect other requests of its batch', async () => {
    const { handler, errors } = await bed({})
    const attributes = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`a${i}`, 1]))
    const decisions = await Promise.all([handler.check({}), handler.check({ attributes }), handler.check({})])
    expect(decisions.map(({ degraded }) => degraded)).toEqual([false, true, false])
    expect(decisions[2]?.remaining).toBe(8)
    expect(errors).toMatchObject([{ code: 'FLUXGATE_ARGUMENT_INVALID' }])
    expect(handler.breaker).toBe('CLOSED')
  })

  it('throws a validation error if it is not JSON', async () => {
    const { handler } = await bed({})
    const wrong = handler.check({ attributes: { big: 1n } })
    await expect(wrong).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
  })
})

describe('a server with tokens', () => {
  it('accepts a valid token, and reports an invalid one as a misconfiguration instead of an outage', async () => {
    const serving = { adminToken: 'admin', checkToken: 'check' }
    for (const token of ['check', 'admin'])
      expect(await (await bed({}, { token }, serving)).handler.check({})).toMatchObject({ degraded: false })
    for (const options of [{}, { token: 'chec' }]) {
      const { handler, errors } = await bed({}, options, serving)
      expect(await handler.check({})).toMatchObject({ allowed: true, degraded: true })
      expect(errors).toMatchObject([{ code: 'FLUXGATE_STORE_MISCONFIGURED' }])
      expect(String(errors[0])).toMatch(/replied with status 401/)
    }
  })
})

it('a TLS server is used if its certificate is trusted', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-tls-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const { cert, key } = selfSigned()
  const tls = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') }
  writeFileSync(tls.cert, cert)
  writeFileSync(tls.key, key)
  const trusting = await bed({}, { tls: { ca: cert } }, { tls })
  expect(trusting.url).toMatch(/^https:/)
  expect(await trusting.handler.check({})).toMatchObject({ degraded: false })
  const { handler, errors } = await bed({}, {}, { tls })
  expect(await handler.check({})).toMatchObject({ degraded: true })
  expect(String(errors[0])).toMatch(/self-signed certificate/)
})

describe('delayed requests', () => {
  const spaced = { algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 3, window: '1h' }] }

  it('are rejected if the queue is full, and cost nothing', async () => {
    const { handler, gate } = await bed(spaced, { maxConcurrentWaits: 1 })
    const ask = () => handler.check({}, { onLeave: () => {} })
    expect((await ask()).delayMs).toBe(0)
    expect((await ask()).delayMs).toBeGreaterThan(0)
    const rejected = await ask()
    expect(rejected).toMatchObject({ allowed: false, delayMs: 0, reason: 'LIMITED', bands: [{ allowed: false }] })
    expect(rejected.retryAfterMs).toBeLessThanOrEqual(20 * 60_000)
    await eventually('the permit is refunded', async () => (await gate.check({}, { peek: true })).allowed)
  })

  it('are rejected when the handler closes, and their permits are refunded', async () => {
    const { handler, gate } = await bed(spaced)
    const left: string[] = []
    await handler.check({})
    await handler.check({}, { onLeave: (how) => left.push(how) })
    await handler.close()
    expect(left).toEqual(['CLOSED'])
    expect((await gate.check({}, { peek: true })).delayMs).toBeLessThanOrEqual(20 * 60_000)
    await expect(handler.check({})).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
  })
})

it('returns the same decisions as a local handler for random requests, field by field', async () => {
  const seed = Number(process.env.FLUXGATE_SEED ?? Date.now())
  const random = seededRandom(seed)
  const pick = <T>(...values: T[]): T => values[Math.floor(random() * values.length)] as T
  const ruleSets = [
    {
      id: 'api',
      rules: [
        rule({ id: 'user', limitScope: 'USER_ID', path: '/api/**', bands: [{ capacity: 5, window: '10s' }] }),
        rule({ id: 'ip', limitScope: 'IP', algorithm: 'SLIDING_WINDOW_LOG', bands: [{ capacity: 20, window: '7s' }] }),
        rule({ id: 'slow', algorithm: 'LEAKY_BUCKET', method: 'POST', bands: [{ capacity: 4, window: '3s' }] }),
        rule({ id: 'key', limitScope: 'API_KEY', onMissingKey: 'DENY', when: { 'attributes.paid': 'true' } }),
      ],
    },
  ]
  const clocks = [manualClock(1_800_000_000_000), manualClock(1_800_000_000_000)] as const
  const here = await standalone({ ruleSets, clock: clocks[0] })
  const there = await remote({ ruleSets, clock: clocks[1] })
  onTestFinished(async () => {
    await here.close()
    await there.close()
  })
  for (let step = 0; step < 300; step++) {
    const context = {
      ...{ userId: pick('a', 'b', undefined), clientIp: pick('1.1.1.1', '2.2.2.2'), apiKey: pick('k', undefined) },
      ...{ method: pick('GET', 'POST'), path: pick('/api/x', '/', '/api'), attributes: { paid: pick('true', 'no') } },
    }
    const options = { permits: pick(1, 1, 2, 6), peek: pick(true, false, false), ruleSetId: pick('api', 'api', 'x') }
    const decisions = await Promise.all([here, there].map(({ handler }) => handler.check(context, options)))
    expect(decisions[1], `seed ${seed}, step ${step}`).toEqual(decisions[0])
    if (random() < 0.1) for (const { handler } of [here, there]) await handler.refund(context, options)
    const ms = Math.floor(random() * 2_000)
    for (const clock of clocks) clock.advance(ms)
  }
})
