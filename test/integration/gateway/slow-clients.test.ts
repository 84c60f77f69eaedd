/** Clients that send slowly or open many connections do not block other clients. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, type GatewaySetup, gatewayTo, serve, upstream } from '../../fixtures/test-gateway.js'

const longTimeout = { connectTimeout: '1h', responseTimeout: '1h' }

/** Sends one byte of its body at a time and never completes it. */
function dripping(port: number): { readonly socket: Socket; received(): string } {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  let received = ''
  socket.setEncoding('latin1').on('data', (data: string) => {
    received += data
  })
  socket.write('POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n')
  const drip = setInterval(() => socket.write('x'), 20)
  const stop = (): void => clearInterval(drip)
  onTestFinished(() => {
    stop()
    socket.destroy()
  })
  socket.once('close', stop)
  return { socket, received: () => received }
}

it('a slow upload gets 408 and frees its upstream connection', async () => {
  const target = await upstream((message, response) => {
    message
      .on('error', () => {})
      .resume()
      .on('end', () => response.end('ok'))
  })
  const settings = { ...longTimeout, maxConnections: 1, minUploadRate: 100_000, uploadGracePeriod: '100ms' }
  const { port, url } = await gatewayTo(target, { gateway: settings })
  const { socket, received } = dripping(port)
  await once(socket, 'close')
  expect(received()).toMatch(/^HTTP\/1\.1 408 /)
  expect(received()).toContain('Connection: close\r\n')
  expect((await ask(url)).status).toBe(200)
})

describe('one client address', () => {
  const from = (ip: string) => ({ headers: { 'X-Forwarded-For': ip } })
  async function gateway(more: GatewaySetup['gateway'] = {}) {
    const seen: string[] = []
    const releases: (() => void)[] = []
    const target = await upstream((message, response) => {
      seen.push(String(message.url))
      if (message.url?.startsWith('/held')) releases.push(() => response.end('held'))
      else response.end('ok')
    })
    const settings = { ...longTimeout, maxConnections: 4, ...more }
    const started = await gatewayTo(target, { gateway: settings, ratelimit: { trustedProxies: 'loopback' } })
    return { ...started, seen, releases }
  }

  it('uses at most half of the connections; others are served, and its own requests follow in order', async () => {
    const { url, seen, releases } = await gateway()
    const held = Array.from({ length: 5 }, (_, i) => ask(`${url}/held${i}`, from('203.0.113.1')))
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBe(2)
    expect((await ask(`${url}/other`, from('203.0.113.2'))).body).toBe('ok')
    expect(seen.filter((path) => path.startsWith('/held'))).toHaveLength(2)
    for (let i = 0; i < 5; i++) {
      await expect.poll(() => releases.length, { timeout: 20_000 }).toBeGreaterThan(i)
      releases[i]?.()
    }
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  })

  it('can use all of them with clientShare: 1', async () => {
    const { url, seen, releases } = await gateway({ clientShare: 1 })
    const held = Array.from({ length: 4 }, (_, i) => ask(`${url}/held${i}`, from('203.0.113.1')))
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBe(4)
    for (const release of releases) release()
    await Promise.all(held)
  })

  it('that disconnects while queued makes room for its next request', async () => {
    const { url, seen, releases } = await gateway({ maxConnections: 2 })
    const first = ask(`${url}/held0`, from('203.0.113.1'))
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBe(1)
    const leaving = request(`${url}/held1`, { agent: false, ...from('203.0.113.1') }).on('error', () => {})
    leaving.end()
    await once(leaving, 'socket')
    leaving.destroy()
    const next = ask(`${url}/next`, from('203.0.113.1'))
    releases[0]?.()
    expect((await first).body).toBe('held')
    await expect
      .poll(() => releases.splice(0).map((release) => release()) && seen.includes('/next'), { timeout: 20_000 })
      .toBe(true)
    expect((await next).body).toBe('ok')
  })
})

it('a WebSocket uses a connection until it closes', async () => {
  let hasLeft = false
  const server = createServer((_, response) => response.end(hasLeft ? 'after' : 'before'))
  server.on('upgrade', (_, socket) => {
    socket.on('error', () => socket.destroy())
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  })
  const { port, url } = await gatewayTo(await serve(server), { gateway: { ...longTimeout, maxConnections: 1 } })
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  onTestFinished(() => void socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n')
  await once(socket, 'data')
  const asked = ask(url)
  // Gives a request that does not wait for the WebSocket time to be answered.
  await new Promise((resolve) => setTimeout(resolve, 200))
  hasLeft = true
  socket.destroy()
  expect((await asked).body).toBe('after')
})
