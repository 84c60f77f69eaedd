/** Concurrency limits in the gateway: streaming responses and WebSocket tunnels. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { expect, it, onTestFinished, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { RunningGateway } from '../../../src/program/gateway/create-gateway.js'
import { eventually } from '../../fixtures/eventually.js'
import { ask, gatewayWith, serve, upstream } from '../../fixtures/test-gateway.js'

const oneAtATime = {
  name: 'RateLimiter',
  args: { bands: [{ algorithm: 'CONCURRENCY', capacity: 1, maxHold: '3s' }] },
}

/** Resolves after the fourth renewal from now. Holds are renewed three times per `maxHold`, so the first one would have expired. */
async function renewed({ gate }: RunningGateway): Promise<void> {
  const renew = vi.spyOn(gate, 'renew')
  await eventually('the hold has been renewed four times', () => renew.mock.calls.length >= 4)
}

it('holds a slot for the whole of a streaming response, beyond maxHold, and frees it at its end', async () => {
  const responses: ServerResponse[] = []
  const { url: uri } = await upstream((_, response) => {
    responses.push(response)
    response.write('begin')
  })
  const { url, running } = await gatewayWith({ routes: [{ id: 'stream', uri, filters: [oneAtATime] }] })
  const first = ask(url)
  await eventually('streaming', () => responses.length === 1)
  await renewed(running)
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
  const { url, running } = await gatewayWith({ routes: [{ id: 'ws', uri, filters: [oneAtATime] }] })
  const open = (): WebSocket => {
    const socket = new WebSocket(url.replace('http', 'ws'))
    onTestFinished(() => socket.terminate())
    socket.on('error', () => {})
    return socket
  }
  const first = open()
  await once(first, 'open')
  await renewed(running)
  const [, response] = await once(open(), 'unexpected-response')
  expect(response.statusCode).toBe(429)
  first.terminate()
  await eventually('a further socket is admitted', async () => {
    const socket = open()
    return Promise.race([once(socket, 'open').then(() => true), once(socket, 'unexpected-response').then(() => false)])
  })
  expect(sockets.clients.size).toBeGreaterThan(0)
})
