/** WebSockets and other protocol upgrades through the gateway. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { type Echo, echoUpstream, gatewayWith, raw, sent, serve } from '../../fixtures/test-gateway.js'

/** Echoes messages and records the requests it received. */
async function echoSockets() {
  const server = createServer((_, response) => response.writeHead(418, { 'X-A': 'b' }).end('no socket here'))
  const sockets = new WebSocketServer({ server, path: '/ws' })
  const asked: { url: string | undefined; rawHeaders: string[] }[] = []
  sockets.on('connection', (socket, { url, rawHeaders }) => {
    asked.push({ url, rawHeaders })
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    socket.on('close', () => {})
  })
  return { ...(await serve(server)), sockets, asked }
}

function open(url: string, protocol?: string): WebSocket {
  const socket = new WebSocket(url.replace('http', 'ws'), protocol)
  onTestFinished(() => socket.terminate())
  socket.on('error', () => {})
  return socket
}

const limited = { name: 'RateLimiter', args: { bands: [{ capacity: 1, window: '1h' }] } }

describe('a WebSocket', () => {
  it('is proxied in both directions, with messages of every size', async () => {
    const target = await echoSockets()
    const { url } = await gatewayWith({ routes: [{ id: 'ws', uri: target.url, filters: ['StripPrefix=1'] }] })
    const socket = open(`${url}/api/ws?token=x`)
    await once(socket, 'open')
    for (const size of [0, 5, 200, 70_000, 3_000_000]) {
      const data = Buffer.alloc(size, 7)
      socket.send(data)
      expect(((await once(socket, 'message'))[0] as Buffer).equals(data)).toBe(true)
    }
    const [asked] = target.asked
    expect(asked?.url).toBe('/ws?token=x')
    expect(sent(asked as unknown as Echo, 'X-Forwarded-For')).toEqual(['127.0.0.1'])
    expect(sent(asked as unknown as Echo, 'Connection')).toEqual(['upgrade'])
  })

  it('closes on both sides when one side closes it', async () => {
    const target = await echoSockets()
    const { url } = await gatewayWith({ routes: [{ id: 'ws', uri: target.url }] })
    const first = open(`${url}/ws`)
    const [one] = await once(target.sockets, 'connection')
    first.terminate()
    await once(one, 'close')
    const second = open(`${url}/ws`)
    const [[two]] = await Promise.all([once(target.sockets, 'connection'), once(second, 'open')])
    two.close(1000, 'enough')
    const [code, reason] = await once(second, 'close')
    expect([code, String(reason)]).toEqual([1000, 'enough'])
  })

  it('is rate limited by its opening request', async () => {
    const target = await echoSockets()
    const { url } = await gatewayWith({ routes: [{ id: 'ws', uri: target.url, filters: [limited] }] })
    const first = open(`${url}/ws`)
    const [[response]] = await Promise.all([once(first, 'upgrade'), once(first, 'open')])
    expect(response.headers).toMatchObject({ 'x-ratelimit-remaining': '0' })
    const [, rejection] = await once(open(`${url}/ws`), 'unexpected-response')
    expect(rejection.statusCode).toBe(429)
    expect(rejection.headers).toMatchObject({ 'content-type': 'application/problem+json' })
    expect(target.asked).toHaveLength(1)
  })

  it('that is declined gets the response of the upstream or the gateway', async () => {
    const target = await echoSockets()
    const { url } = await gatewayWith({ routes: [{ id: 'ws', uri: target.url, predicates: ['Path=/ws/**'] }] })
    const [, elsewhere] = await once(open(`${url}/ws/none`), 'unexpected-response')
    expect([elsewhere.statusCode, elsewhere.headers['x-a']]).toEqual([400, undefined])
    const [, nowhere] = await once(open(`${url}/none`), 'unexpected-response')
    expect(nowhere.statusCode).toBe(404)
    const away = await gatewayWith({ routes: [{ id: 'ws', uri: 'http://127.0.0.1:1' }] })
    const [, refused] = await once(open(`${away.url}/ws`), 'unexpected-response')
    expect(refused.statusCode).toBe(502)
  })

  it('is closed when the gateway stops', async () => {
    const target = await echoSockets()
    const { url, running } = await gatewayWith({ routes: [{ id: 'ws', uri: target.url }] })
    const socket = open(`${url}/ws`)
    await once(socket, 'open')
    const closed = once(socket, 'close')
    await running.close()
    await closed
  })
})

describe('an offer of another protocol', () => {
  it('is not forwarded; the request is, with its body, and so is the next one', async () => {
    const { url: uri } = await echoUpstream()
    const { port } = await gatewayWith({ routes: [{ id: 'one', uri }] })
    const replies = await raw(
      port,
      'POST /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 3\r\n\r\nabc' +
        'GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    )
    const echoes = [...replies.matchAll(/\{"method".*?"trailers":\[\]\}/g)].map(([text]) => JSON.parse(text) as Echo)
    expect(echoes.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['POST', '/a', 'abc'],
      ['GET', '/b', ''],
    ])
    for (const name of ['Upgrade', 'HTTP2-Settings']) expect(sent(echoes[0] as Echo, name)).toEqual([])
    expect(sent(echoes[0] as Echo, 'Connection')).toEqual(['keep-alive'])
  })
})
