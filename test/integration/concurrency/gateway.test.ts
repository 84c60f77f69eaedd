/** Concurrency limits in the gateway: streaming responses and WebSocket tunnels. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { eventually } from '../../fixtures/eventually.js'
import { ask, gatewayWith, serve, upstream } from '../../fixtures/test-gateway.js'

const oneAtATime = {
  name: 'RateLimiter',
  args: { bands: [{ algorithm: 'CONCURRENCY', capacity: 1, maxHold: '300ms' }] },
}

it('holds a slot for the whole of a streaming response, beyond maxHold, and frees it at its end', async () => {
  const responses: ServerResponse[] = []
  const { url: uri } = await upstream((_, response) => {
    responses.push(response)
    response.write('begin')
  })
  const { url } = await gatewayWith({ routes: [{ id: 'stream', uri, filters: [oneAtATime] }] })
  const first = ask(url)
  await eventually('streaming', () => responses.length === 1)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const rejected = await ask(url)
  expect(rejected.status).toBe(429)
  expect(rejected.headers['ratelimit-policy']).toBe('"stream.concurrent";q=1;qu="concurrent-requests"')
  responses[0]?.end('end')
  expect((await first).status).toBe(200)
  const second = ask(url)
  await eventually('admitted', () => responses.length === 2)
  responses[1]?.end()
  await second
})

it('holds a slot for as long as a WebSocket is open', async () => {
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  const { url: uri } = await serve(server)
  const { url } = await gatewayWith({ routes: [{ id: 'ws', uri, filters: [oneAtATime] }] })
  const open = (): WebSocket => {
    const socket = new WebSocket(url.replace('http', 'ws'))
    onTestFinished(() => socket.terminate())
    socket.on('error', () => {})
    return socket
  }
  const first = open()
  await once(first, 'open')
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const [, response] = await once(open(), 'unexpected-response')
  expect(response.statusCode).toBe(429)
  first.terminate()
  await eventually('a further socket is admitted', async () => {
    const socket = open()
    return Promise.race([once(socket, 'open').then(() => true), once(socket, 'unexpected-response').then(() => false)])
  })
  expect(sockets.clients.size).toBeGreaterThan(0)
})
