import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as secureRequest } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createServer } from '../../../src/program/create-server.js'
import { answerOf, raw } from '../../fixtures/test-gateway.js'
import { serverWith, someRules } from '../../fixtures/test-server.js'
import { selfSigned } from '../../servers/self-signed.js'

const check = '/api/ratelimit/check'
const login = { clientIp: '203.0.113.7', path: '/login' }

const post = (body: string, headers = '') =>
  `POST ${check} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

describe('requests without a route', () => {
  it('get 404 for unknown routes, and 405 with the allowed methods for other methods', async () => {
    const { ask } = await serverWith()
    for (const path of ['/api', '/api/', '/api/ratelimit', `${check}/`, '/API/ratelimit/check', '//', '/api//stats'])
      expect(await ask('GET', path)).toMatchObject({ status: 404, body: { code: 'FLUXGATE_NOT_FOUND' } })
    const wrong = await ask('GET', check)
    expect(wrong).toMatchObject({ status: 405, body: { code: 'FLUXGATE_METHOD_NOT_ALLOWED' } })
    expect(wrong.headers.get('allow')).toBe('POST, OPTIONS')
    const rule = await ask('POST', '/api/rule-sets/a/rules/b', {})
    expect(rule.headers.get('allow')).toBe('GET, PUT, PATCH, DELETE, HEAD, OPTIONS')
  })

  it('get no body for HEAD, and the allowed methods for OPTIONS', async () => {
    const { ask } = await serverWith()
    const head = await ask('HEAD', '/health/live')
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers.get('content-length')).toBe('15')
    const options = await ask('OPTIONS', check)
    expect(options.status).toBe(204)
    expect(options.headers.get('allow')).toBe('POST, OPTIONS')
    expect((await ask('OPTIONS', '/nowhere')).status).toBe(404)
    expect((await ask('HEAD', '/api/events')).status).toBe(200)
  })

  it('get 400 for invalid percent-encoding', async () => {
    const { ask } = await serverWith()
    for (const path of ['/api/rule-sets/%', '/api/rule-sets/%zz', '/api/rule-sets/%ff', '/api/buckets?ruleSetId=%'])
      expect((await ask('GET', path)).status).toBe(400)
  })
})

describe('bodies', () => {
  it('that are not JSON get 415', async () => {
    const { ask } = await serverWith()
    const body = JSON.stringify(login)
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      'application/json; charset=latin1',
    ])
      expect(await ask('POST', check, body, { 'Content-Type': type })).toMatchObject({
        status: 415,
        body: { code: 'FLUXGATE_MEDIA_TYPE_UNSUPPORTED' },
      })
    expect((await ask('POST', check, body, { 'Content-Encoding': 'gzip' })).status).toBe(415)
    for (const type of ['application/json', 'Application/JSON; charset=UTF-8', 'application/vnd.x+json'])
      expect((await ask('POST', check, body, { 'Content-Type': type })).status).toBe(200)
  })

  it.each([
    ['nothing', ''],
    ['half an object', '{"clientIp":'],
    ['two values', '{} {}'],
    ['no JSON', '{clientIp: 1}'],
    ['101 levels', `{"attributes":${'['.repeat(100)}${']'.repeat(100)}}`],
    ['100 000 levels', '['.repeat(100_000)],
  ])('of %s get 400', async (_, body) => {
    const { port } = await serverWith()
    expect(await raw(port, post(body), (received) => received.includes('}'))).toMatch(/^HTTP\/1\.1 400 /)
  })

  it('with 100 levels are accepted, even with brackets in strings', async () => {
    const { ask } = await serverWith()
    const deep = `{"path":"${'['.repeat(200)}\\"[{","attributes":{"a":${'['.repeat(98)}${']'.repeat(98)}}}`
    expect((await ask('POST', check, deep)).status).toBe(200)
  })

  it('that are not UTF-8 get 400', async () => {
    const { url } = await serverWith()
    const body = Buffer.concat([Buffer.from('{"userId":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
    const response = await fetch(`${url}${check}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    })
    expect(response.status).toBe(400)
  })

  it('of 1 MiB are accepted, and of one byte more get 413, with or without Content-Length', async () => {
    const { ask, url } = await serverWith()
    const padded = (size: number) => `{"x":"${'a'.repeat(size - 8)}"}`
    expect((await ask('POST', check, padded(2 ** 20))).status).toBe(200)
    expect(await ask('POST', check, padded(2 ** 20 + 1))).toMatchObject({
      status: 413,
      body: { code: 'FLUXGATE_BODY_TOO_LARGE' },
    })
    const chunks = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 20; i++) controller.enqueue(Buffer.alloc(2 ** 16, 'a'))
        controller.close()
      },
    })
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: chunks,
      duplex: 'half',
    } as const
    expect((await fetch(`${url}${check}`, init)).status).toBe(413)
  })

  it('with Expect are requested only after the head was accepted', async () => {
    const { port } = await serverWith()
    const announced = (length: number) =>
      `POST ${check} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`
    expect(await raw(port, announced(2 ** 21), (received) => received.includes('}'))).toMatch(/^HTTP\/1\.1 413 /)
    expect(await raw(port, announced(2), (received) => received.includes('\r\n\r\n'))).toMatch(
      /^HTTP\/1\.1 100 Continue/,
    )
    const refused = await serverWith({ adminToken: 'secret' })
    // Until it is closed: the bytes that follow could be the body or the next request.
    const received = await raw(refused.port, announced(2))
    expect(received).toMatch(/^HTTP\/1\.1 401 /)
    expect(received).toMatch(/\r\nConnection: close\r\n/)
  })
})

describe('connections', () => {
  it('carry many requests, even after invalid ones', async () => {
    const { port } = await serverWith()
    const ok = post(JSON.stringify({ path: '/elsewhere' }))
    const received = await raw(
      port,
      ok + post('{') + post('[]') + ok,
      (text) => text.match(/HTTP\/1\.1/g)?.length === 4,
    )
    expect(received.match(/HTTP\/1\.1 (\d+)/g)).toEqual([
      'HTTP/1.1 200',
      'HTTP/1.1 400',
      'HTTP/1.1 400',
      'HTTP/1.1 200',
    ])
  })

  it('with more than 100 headers, or 16 KiB of them, get 431', async () => {
    const { port } = await serverWith()
    const many = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: 1\r\n`).join('')
    // Host, Content-Type and Content-Length are three of them.
    expect(await raw(port, post('{}', many(97)), (received) => received.includes('}'))).toMatch(/^HTTP\/1\.1 200 /)
    expect(await raw(port, post('{}', many(98)), (received) => received.includes('}'))).toMatch(/^HTTP\/1\.1 431 /)
    const long = await raw(port, post('{}', `X-Long: ${'a'.repeat(17_000)}\r\n`))
    expect(long).toMatch(/^HTTP\/1\.1 431 /)
    expect(long).toContain('"code":"FLUXGATE_HEADERS_TOO_LARGE"')
  })

  it('that do not use HTTP get a problem document', async () => {
    const { port } = await serverWith()
    const received = await raw(port, 'hello\r\n\r\n')
    expect(received).toMatch(/^HTTP\/1\.1 400 /)
    expect(received).toContain('application/problem+json')
    expect(received).toContain('"code":"FLUXGATE_REQUEST_INVALID"')
  })

  it('that are cut off are not server errors', async () => {
    const lines: string[] = []
    const log = (message: string) => lines.push(message)
    const { port, ask } = await serverWith({ logger: { info: log, warn: log, error: log } })
    const head = post('{"path":"/login"}', 'Expect: 100-continue\r\n').split('{')[0] as string
    await raw(port, head, (received) => received.includes('100 Continue'))
    expect((await ask('GET', '/health/live')).status).toBe(200)
    expect(lines).not.toContain('request failed')
  })

  it('without Host are rejected', async () => {
    const { port } = await serverWith()
    expect(await raw(port, 'GET /health/live HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  })

  it('may send an absolute URL, as proxy clients do', async () => {
    const { port } = await serverWith()
    const whole = 'GET http://localhost/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    expect(await raw(port, whole)).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('health', () => {
  it('is live and ready without the store, not ready with strict, and not ready while draining', async () => {
    const { ask, gate, server } = await serverWith()
    expect(await ask('GET', '/health/live')).toMatchObject({ status: 200, body: { status: 'UP' } })
    const health = await gate.health()
    const ready = await ask('GET', '/health/ready')
    expect(ready).toMatchObject({ status: 200, body: { status: 'UP', store: { status: 'UP', error: null } } })
    gate.health = async () => ({
      ...health,
      status: 'DEGRADED',
      store: { ...health.store, status: 'DOWN', sinceAt: 1_700_000_000_000, error: 'Redis does not answer.' },
    })
    const store = { status: 'DOWN', sinceAt: 1_700_000_000_000, error: 'Redis does not answer.' }
    const degraded = { status: 'DEGRADED', store }
    for (const path of ['/health/ready', '/health/ready?strict=false'])
      expect(await ask('GET', path)).toMatchObject({ status: 200, body: degraded })
    for (const path of ['/health/ready?strict', '/health/ready?strict=', '/health/ready?strict=true'])
      expect(await ask('GET', path)).toMatchObject({ status: 503, body: degraded })
    expect((await ask('HEAD', '/health/ready?strict')).status).toBe(503)
    for (const path of ['/health/ready?strict=1', '/health/ready?strct'])
      expect((await ask('GET', path)).status).toBe(400)
    expect((await ask('GET', '/health/live')).status).toBe(200)
    server.drain()
    expect(await ask('GET', '/health/ready')).toMatchObject({ status: 503, body: { status: 'STOPPING' } })
  })

  it('is not ready once the gate is closed and every check is rejected', async () => {
    const { ask, gate } = await serverWith()
    expect((await ask('GET', '/health/ready?strict')).status).toBe(200)
    await gate.close()
    expect((await ask('POST', '/api/ratelimit/check', { clientIp: '203.0.113.7' })).status).toBe(503)
    expect(await ask('GET', '/health/ready')).toMatchObject({ status: 503, body: { status: 'DOWN' } })
    expect((await ask('GET', '/health/live')).status).toBe(200)
  })

  it('is ready with outdated rules, and reports them', async () => {
    const { ask, gate } = await serverWith()
    const health = await gate.health()
    gate.health = async () => ({
      ...health,
      status: 'DEGRADED',
      rules: { ...health.rules, status: 'STALE', error: 'rules.yaml: 1 error', sinceAt: 1 },
    })
    expect(await ask('GET', '/health/ready')).toMatchObject({
      status: 200,
      body: { status: 'DEGRADED', rules: { status: 'STALE', error: 'rules.yaml: 1 error', sinceAt: 1 } },
    })
  })
})

describe('the shutdown of a server', () => {
  /** A connection with a started request: the server waits for its body. */
  async function begun(port: number, body: string) {
    const socket = connect(port, '127.0.0.1')
    const received: string[] = []
    socket.on('error', () => {}).on('data', (data) => received.push(String(data)))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(post(body, 'Expect: 100-continue\r\n').split('{')[0] as string)
    await once(socket, 'data')
    expect(received.splice(0).join('')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    return { socket, received, closed }
  }

  it('finishes the request in flight, closes its connection and accepts no more', async () => {
    const { port, server } = await serverWith()
    const body = JSON.stringify(login)
    const { socket, received, closed } = await begun(port, body)
    const unused = connect(port, '127.0.0.1')
    await once(unused, 'connect')
    const unusedClosed = new Promise((resolve) => unused.on('error', () => {}).once('close', resolve))
    const ended = server.close(60_000)
    socket.write(body)
    await Promise.all([ended, closed, unusedClosed])
    expect(received.join('')).toMatch(/^HTTP\/1\.1 200 /)
    expect(received.join('')).toMatch(/\r\nConnection: close\r\n/)
    await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('cuts off clients that never finish', async () => {
    const { port, server } = await serverWith()
    const { received, closed } = await begun(port, JSON.stringify(login))
    await Promise.all([server.close(1), closed])
    expect(received).toEqual([])
  })
})

describe('TLS', () => {
  const files = (pair: { cert: string; key: string }) => {
    const directory = mkdtempSync(join(tmpdir(), 'fluxgate-tls-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const tls = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') }
    writeFileSync(tls.cert, pair.cert)
    writeFileSync(tls.key, pair.key)
    return tls
  }

  it('with certificate files', async () => {
    const pair = selfSigned()
    const { url, port } = await serverWith({ tls: files(pair) })
    expect(url).toBe(`https://127.0.0.1:${port}`)
    const outgoing = secureRequest(`${url}/health/live`, { ca: pair.cert, agent: false })
    outgoing.end()
    const [response] = await once(outgoing, 'response')
    expect(await answerOf(response)).toMatchObject({ status: 200, body: '{"status":"UP"}' })
  })

  it('with missing or mismatched files reports which', async () => {
    const gate = await createFluxGate({ rules: someRules })
    onTestFinished(() => gate.close())
    const nowhere = { cert: '/nowhere/cert.pem', key: '/nowhere/key.pem' }
    const message = 'server.tls.cert: cannot read "/nowhere/cert.pem"'
    expect(() => createServer({ gate, tls: nowhere })).toThrow(message)
    const others = files({ cert: selfSigned().cert, key: selfSigned().key })
    expect(() => createServer({ gate, tls: others })).toThrow(
      'server.tls: certificate and key are invalid or do not match',
    )
  })
})
