/** The gateway with a certificate: HTTPS for clients, and everything else as without. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { expect, it, onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import {
  answerOf,
  type Echo,
  echoUpstream,
  gatewayWith,
  raw,
  sent,
  serve,
  type TestGateway,
} from '../../fixtures/test-gateway.js'
import { type KeyPair, selfSigned } from '../../servers/self-signed.js'

const pair = selfSigned()

interface Files {
  readonly cert: string
  readonly key: string
  write(pair: KeyPair): void
}

/** Paths of a certificate and key, removed after the test. */
function certificateFiles(): Files {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-tls-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
  const write = (pair: KeyPair): void => {
    writeFileSync(cert, pair.cert)
    writeFileSync(key, pair.key)
  }
  write(pair)
  return { cert, key, write }
}

const secured = (uri: string, { cert, key }: Files = certificateFiles(), filters: unknown[] = []) =>
  gatewayWith({ routes: [{ id: 'all', uri, filters }], gateway: { tls: { cert, key } } })

async function ask({ port }: TestGateway, path: string) {
  const asked = request({ host: '127.0.0.1', port, path, ca: pair.cert, agent: false }).end()
  return answerOf((await once(asked, 'response'))[0])
}

async function handshake({ port }: TestGateway, ca: string): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, ca })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

it('serves HTTPS, applies limits and forwards the protocol to the upstream', async () => {
  const limit = { name: 'RateLimiter', args: { bands: [{ capacity: 1, window: '1d' }] } }
  const gateway = await secured((await echoUpstream()).url, undefined, [limit])
  const first = await ask(gateway, '/a?b=c')
  const echo = JSON.parse(first.body) as Echo
  expect([first.status, first.headers['x-ratelimit-remaining'], echo.url]).toEqual([200, '0', '/a?b=c'])
  expect(sent(echo, 'X-Forwarded-Proto')).toEqual(['https'])
  expect(sent(echo, 'Forwarded')).toEqual([`for=127.0.0.1;host="127.0.0.1:${gateway.port}";proto=https`])
  const second = await ask(gateway, '/a')
  expect([second.status, second.headers['content-type']]).toEqual([429, 'application/problem+json'])
})

it('proxies WebSockets', async () => {
  const server = createServer()
  new WebSocketServer({ server }).on('connection', (socket) => socket.on('message', (data) => socket.send(data)))
  const { port } = await secured((await serve(server)).url)
  const socket = new WebSocket(`wss://127.0.0.1:${port}/`, { ca: pair.cert })
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  socket.send('hello')
  expect(String((await once(socket, 'message'))[0])).toBe('hello')
})

it('ignores an offer to upgrade to another protocol', async () => {
  const gateway = await secured((await echoUpstream()).url)
  const socket = await handshake(gateway, pair.cert)
  socket.write('GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n')
  let received = ''
  for await (const piece of socket) received += piece
  expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
})

it('closes connections that do not use TLS and keeps running', async () => {
  const gateway = await secured((await echoUpstream()).url)
  expect(await raw(gateway.port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')).not.toContain('HTTP/1.1')
  expect((await ask(gateway, '/')).status).toBe(200)
})

it('serves a new certificate after a reload, and keeps the old one if the new one is invalid', async () => {
  const files = certificateFiles()
  const gateway = await secured((await echoUpstream()).url, files)
  const next = selfSigned()
  files.write({ cert: next.cert, key: pair.key })
  expect(() => gateway.running.renewCertificate()).toThrow(
    /^gateway\.tls: certificate and key are invalid or do not match/,
  )
  await handshake(gateway, pair.cert)
  files.write(next)
  gateway.running.renewCertificate()
  await handshake(gateway, next.cert)
  await expect(handshake(gateway, pair.cert)).rejects.toThrow(/certificate/)
})

it('does not start if the certificate is missing', async () => {
  const missing = { ...certificateFiles(), key: '/nowhere/key.pem' }
  await expect(secured('http://127.0.0.1:1', missing)).rejects.toMatchObject({
    code: 'FLUXGATE_CONFIG_INVALID',
    message: expect.stringMatching(/^gateway\.tls\.key: cannot read "\/nowhere\/key\.pem"/),
  })
})

it('does not wait for incomplete handshakes when it closes', async () => {
  const gateway = await secured((await echoUpstream()).url)
  const silent = connectPlain(gateway.port, '127.0.0.1')
  silent.on('error', () => {})
  await once(silent, 'connect')
  const gone = once(silent, 'close')
  await gateway.running.close()
  await gone
})
