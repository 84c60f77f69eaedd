/** Decisions while the FluxGate server is unavailable, slow, broken or rejects the token. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { HttpHandler, type HttpHandlerOptions } from '../../../src/handlers/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { freePort } from '../../servers/free-port.js'

/** A server whose responses the test controls. */
async function answering(answer: (request: IncomingMessage, response: ServerResponse, body: string) => void) {
  const paths: string[] = []
  const server = createHttpServer((request, response) => {
    paths.push(request.url ?? '')
    let body = ''
    request.setEncoding('utf8').on('data', (piece) => {
      body += piece
    })
    request.on('end', () => answer(request, response, body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
}

function handlerOf(options: HttpHandlerOptions) {
  const errors: unknown[] = []
  const handler = new HttpHandler({
    timeoutMs: 10_000,
    connectTimeoutMs: 0,
    onError: (error) => errors.push(error),
    ...options,
  })
  onTestFinished(() => handler.close())
  return { handler, errors }
}

const nowhere = 'http://127.0.0.1:1'

describe('warnings', () => {
  const warned = (options: HttpHandlerOptions) => {
    const logged: string[] = []
    const { handler } = handlerOf({
      ...options,
      logger: { warn: (message, { code }) => logged.push(`${code} ${message}`) },
    })
    return { handler, logged }
  }

  it('report a wrong token once, and count it each time', async () => {
    const { url } = await answering((_request, response) =>
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"detail":"The token is wrong."}'),
    )
    const { handler, logged } = warned({ url, token: 'wrong' })
    for (let i = 0; i < 2; i++) expect(await handler.check({})).toMatchObject({ allowed: true, degraded: true })
    expect(logged).toEqual([
      `FLUXGATE_STORE_MISCONFIGURED The server at ${url} replied with status 401: The token is wrong. Until it answers, requests are decided without it (ALLOW). See docs/reference/errors.md.`,
    ])
    expect(handler.warnings.counts).toEqual({ FLUXGATE_STORE_MISCONFIGURED: 2 })
  })

  it('report a server that is not there', async () => {
    const { handler, logged } = warned({ url: nowhere, onStoreFailure: 'DENY' })
    for (let i = 0; i < 2; i++) await handler.check({})
    expect(logged).toEqual([
      expect.stringMatching(
        /^FLUXGATE_STORE_FAILED The call to the server at .* requests are decided without it \(DENY\)/,
      ),
    ])
  })
})
const decision = {
  ...{ allowed: true, delayMs: 0, reason: 'ALLOWED', ruleSetId: 'api', ruleId: 'a', band: 'b', key: 'k', limit: 1 },
  ...{ remaining: 0, retryAfterMs: 0, resetAt: 1, policy: 'REJECT', degraded: false, bands: [] },
}

describe('an unavailable server', () => {
  it('allows requests as degraded decisions', async () => {
    const { handler, errors } = handlerOf({ url: nowhere })
    expect(await handler.check({}, { ruleSetId: 'api' })).toMatchObject({
      ...{ allowed: true, degraded: true, reason: 'STORE_FAILURE', ruleSetId: 'api', remaining: -1 },
      degradedCause: 'FLUXGATE_STORE_FAILED',
    })
    expect(errors).toMatchObject([{ code: 'FLUXGATE_STORE_FAILED' }])
    expect(String(errors[0])).toContain('The call to the server at http://127.0.0.1:1 failed: connect ECONNREFUSED')
  })

  it('rejects requests under DENY', async () => {
    const { handler } = handlerOf({ url: nowhere, onStoreFailure: 'DENY' })
    expect(await handler.check({})).toMatchObject({
      ...{ allowed: false, degraded: true, reason: 'STORE_FAILURE', retryAfterMs: 1_000 },
    })
  })

  it('applies the fallback limit in this process', async () => {
    const rules = { id: 'api', rules: [{ id: 'a', bands: [{ capacity: 2, window: '1m' }] }] }
    const fallback = await createFluxGate({ rules })
    onTestFinished(() => fallback.close())
    const { handler } = handlerOf({ url: nowhere, fallback })
    const decisions = []
    for (let i = 0; i < 3; i++) decisions.push(await handler.check({ clientIp: '1.2.3.4' }))
    expect(decisions[0]?.degradedCause).toBe('FLUXGATE_STORE_FAILED')
    expect(decisions.map(({ allowed, degraded }) => [allowed, degraded])).toEqual([
      [true, true],
      [true, true],
      [false, true],
    ])
  })

  it('cannot refund', async () => {
    const { handler } = handlerOf({ url: nowhere })
    await expect(handler.refund({})).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
  })
})

it('a server that does not respond in time is abandoned, and its connection is closed', async () => {
  const closed: Promise<unknown>[] = []
  const { url } = await answering((request) => closed.push(once(request.socket, 'close')))
  const { handler, errors } = handlerOf({ url, timeoutMs: 30 })
  expect(await handler.check({})).toMatchObject({ allowed: true, degraded: true })
  expect(errors).toMatchObject([{ code: 'FLUXGATE_STORE_TIMEOUT' }])
  await Promise.all(closed)
})

describe('a server that keeps failing', () => {
  it('opens the circuit breaker after five failures; it is probed after 30 ms and then after twice as long', async () => {
    let isWell = false
    const { url, paths } = await answering((_, response) => {
      response.statusCode = isWell ? 200 : 500
      response.end(JSON.stringify(decision))
    })
    const clock = manualClock(0)
    const states: string[] = []
    const { handler, errors } = handlerOf({ url, clock, onStateChange: (state) => states.push(state) })
    const degraded = async () => (await handler.check({})).degraded
    for (let i = 0; i < 5; i++) expect(await degraded()).toBe(true)
    expect([paths.length, handler.breaker]).toEqual([5, 'OPEN'])
    expect(await degraded()).toBe(true)
    expect(paths.length).toBe(5)
    expect(errors.at(-1)).toMatchObject({ code: 'FLUXGATE_STORE_OPEN' })
    await expect(handler.refund({})).rejects.toMatchObject({ code: 'FLUXGATE_STORE_OPEN' })
    clock.advance(29)
    expect(await degraded()).toBe(true)
    expect(paths.length).toBe(5)
    clock.advance(1)
    expect(await degraded()).toBe(true)
    expect([paths.length, handler.breaker]).toEqual([6, 'OPEN'])
    isWell = true
    clock.advance(60)
    expect(await degraded()).toBe(false)
    expect(await degraded()).toBe(false)
    expect(states).toEqual(['OPEN', 'OPEN', 'CLOSED'])
  })
})

describe('an invalid response', () => {
  it.each([
    ['no JSON', '<html>'],
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['half a decision', '{"allowed":true,"remaining":1,"retryAfterMs":0}'],
    ['a decision with a wrong delay', JSON.stringify({ ...decision, delayMs: -1 })],
    ['a decision with a wrong time', JSON.stringify({ ...decision, resetAt: '1' })],
    ['a decision with wrong bands', JSON.stringify({ ...decision, bands: [{}] })],
    ['a batch', JSON.stringify({ decisions: [decision] })],
  ])('is not a decision: %s', async (_, text) => {
    const { url } = await answering((_request, response) => response.end(text))
    const { handler, errors } = handlerOf({ url, onStoreFailure: 'DENY' })
    expect(await handler.check({})).toMatchObject({ allowed: false, degraded: true })
    expect(errors).toMatchObject([{ code: 'FLUXGATE_STORE_FAILED' }])
    expect(String(errors[0])).toContain('did not reply with a decision')
  })

  it('with too few decisions decides none of a batch', async () => {
    const { url } = await answering((_request, response) => response.end(JSON.stringify({ decisions: [decision] })))
    const { handler } = handlerOf({ url })
    const both = await Promise.all([handler.check({}), handler.check({})])
    expect(both.map(({ degraded }) => degraded)).toEqual([true, true])
  })

  it('that is cut off is not a decision', async () => {
    const { url } = await answering((request, response) => {
      response.writeHead(200, { 'content-length': 1_000 })
      response.write('{"allowed":true')
      setImmediate(() => request.socket.destroy())
    })
    const { handler, errors } = handlerOf({ url })
    expect((await handler.check({})).degraded).toBe(true)
    expect(errors).toMatchObject([{ code: 'FLUXGATE_STORE_FAILED' }])
  })

  it('opens the circuit breaker like an outage', async () => {
    const { url, paths } = await answering((_request, response) => response.end('{}'))
    const { handler } = handlerOf({ url, clock: manualClock(0), failures: 2 })
    for (let i = 0; i < 5; i++) await handler.check({})
    expect(paths.length).toBe(2)
  })
})

describe('a server in its own process', () => {
  async function startServer(port: number) {
    const program = ['test/fixtures/limit-server.mjs', String(port)]
    const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [url] = (await once(createInterface(child.stdout), 'line')) as [string]
    return { child, url }
  }

  const openWith = (options: HttpHandlerOptions): HttpHandler => {
    const handler = new HttpHandler(options)
    onTestFinished(() => handler.close())
    return handler
  }

  it.each([
    ['a longer deadline', { timeoutMs: 200, openMs: 50 }],
    ['the default options', {}],
  ])('can be stopped, killed and restarted with %s: every call completes, and it decides again', async (_, options) => {
    const port = await freePort()
    const { child, url } = await startServer(port)
    const handler = openWith({ url, ...options })
    const isDegraded = async () => (await handler.check({})).degraded
    await eventually('the server decides', async () => !(await isDegraded()))
    child.kill('SIGSTOP')
    const answers = await Promise.all(Array.from({ length: 50 }, () => handler.check({})))
    expect(answers.every(({ allowed, degraded }) => allowed && degraded)).toBe(true)
    child.kill('SIGCONT')
    await eventually('the server decides again', async () => !(await isDegraded()))
    child.kill('SIGKILL')
    await once(child, 'close')
    expect(await isDegraded()).toBe(true)
    await startServer(port)
    await eventually('the restarted server decides', async () => !(await isDegraded()))
    expect(handler.breaker).toBe('CLOSED')
  })
})

describe('options', () => {
  it.each([
    [{} as never, /url: must be http:\/\/host:port or https:\/\/host:port; received nothing/],
    [{ url: 'localhost:8090' }, /url: must be http:.*; the received value is hidden/],
    [{ url: 'redis://x' }, /url: must be http:.*; the received value is hidden/],
    [{ url: 'http://user:secret@host' }, /^(?!.*secret).*url: must be http:/s],
    [{ url: 'http://host?x=1' }, /url: must be http:.*; the received value is hidden/],
    [{ url: 'http://host', token: 'a b' }, /token: must be printable ASCII.*; the received value is hidden/],
    [{ url: 'http://host', timeoutMs: 0 }, /timeoutMs: must be a number of milliseconds greater than 0; received 0/],
    [{ url: 'http://host', connections: 0.5 }, /connections: must be an integer from 1 .*; received 0.5/],
    [
      { url: 'http://host', onStoreFailure: 'LOCAL' as const },
      /onStoreFailure: must be ALLOW or DENY without a fallback; received LOCAL/,
    ],
    [{ url: 'http://host', timeout: 1 }, /timeout: unknown field "timeout"; did you mean timeoutMs\?/],
    [undefined as never, /must be an object with url; received nothing/],
  ])('%j are rejected', (options, message) => {
    expect(() => new HttpHandler(options)).toThrow(message)
  })
})
