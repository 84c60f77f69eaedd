/** Requests that a client sends before it has read the responses to earlier ones. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { AccessEntry } from '../../../src/gateway/access-log.js'
import { type GatewaySetup, gatewayTo, raw, serve } from '../../fixtures/test-gateway.js'

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`
const webSocket = get('/socket', 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n')
const slow = get('/slow')
const longBody = Buffer.alloc(4_000_000, 'long ')

/**
 * Answers `/slow` late, `/long` with 4 MB, `/never` never, and everything else at once. Accepts WebSockets and echoes.
 */
async function gateway(setup: Omit<GatewaySetup, 'routes'> = {}) {
  const seen: string[] = []
  const server = createServer((message, response) => {
    seen.push(`${message.method} ${message.url}`)
    message.on('error', () => {}).resume()
    if (message.url === '/slow') setTimeout(() => response.end('slow body'), 200)
    else if (message.url === '/long') response.end(longBody)
    else if (message.url !== '/never') response.end(`body of ${message.url}`)
  })
  server.on('upgrade', (message, socket, first) => {
    seen.push(`upgrade ${message.url}`)
    socket.on('error', () => socket.destroy())
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
    socket.write(first)
    socket.pipe(socket)
  })
  return { seen, ...(await gatewayTo(await serve(server), setup)) }
}

const statuses = (received: string): string[] => received.match(/HTTP\/1\.1 \d{3}/g) ?? []

describe('behind a slow request', () => {
  it('an upgrade waits until the response is written', async () => {
    const { port, seen } = await gateway()
    const received = await raw(port, `${slow}${webSocket}first frame`, (text) => text.endsWith('first frame'))
    expect(statuses(received)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 101'])
    expect(received).toContain('slow body')
    expect(received.indexOf('slow body')).toBeLessThan(received.indexOf('HTTP/1.1 101'))
    expect(seen).toEqual(['GET /slow', 'upgrade /socket'])
  })

  it('an upgrade to another protocol is declined in order', async () => {
    const { port, seen } = await gateway()
    const h2c = get('/next', 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: a\r\n')
    const received = await raw(port, slow + h2c)
    expect(statuses(received)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
    expect(received.indexOf('slow body')).toBeLessThan(received.indexOf('body of /next'))
    expect(seen).toEqual(['GET /slow', 'GET /next'])
  })

  it('an upgrade that HTTP/1.0 offers is ignored', async () => {
    const { port, seen } = await gateway()
    const offer = 'GET /next HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
    const received = await raw(port, slow + offer, (text) => statuses(text).length === 2)
    expect(statuses(received)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
    expect(seen).toEqual(['GET /slow', 'GET /next'])
  })

  it.each([
    ['CONNECT', 405, 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'],
    ['garbage', 400, '@@@ garbage\r\n\r\n'],
    ['a broken body', 400, 'POST /never HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n'],
    ['an empty Transfer-Encoding', 400, 'POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n'],
  ])('%s is answered in order with %d, and closes the connection', async (_, status, text) => {
    const { port } = await gateway()
    const received = await raw(port, slow + text)
    expect(statuses(received)).toEqual(['HTTP/1.1 200', `HTTP/1.1 ${status}`])
    expect(received).toMatch(/slow body(?=HTTP\/1\.1)/)
    expect(received).toContain('application/problem+json')
  })

  it('a response that the client reads late is complete before the upgrade', async () => {
    const { port, seen } = await gateway()
    const socket = connect(port, '127.0.0.1')
    socket.pause()
    socket.write(get('/long') + webSocket)
    let length = 0
    let tail = ''
    socket.on('data', (data: Buffer) => {
      length += data.length
      tail = (tail + data.toString('latin1')).slice(-200)
      if (tail.includes('HTTP/1.1 101')) socket.destroy()
    })
    await expect.poll(() => seen, { timeout: 20_000 }).toContain('GET /long')
    socket.resume()
    await once(socket, 'close')
    expect(length).toBeGreaterThan(longBody.length)
    expect(tail).toMatch(/long HTTP\/1\.1 101 /)
  })
})

describe('a connection that ends with a request', () => {
  it.each([
    ['HTTP/1.0', 'GET /slow HTTP/1.0\r\n\r\n'],
    ['Connection: close', get('/slow', 'Connection: close\r\n')],
  ])('of %s gets one response, whatever follows', async (_, first) => {
    const { port, seen } = await gateway()
    const received = await raw(port, `${first}${get('/smuggled')}@@@`)
    expect(statuses(received)).toEqual(['HTTP/1.1 200'])
    expect(received).toMatch(/\r\n\r\nslow body$/)
    expect(seen).toEqual(['GET /slow'])
  })

  it.each([
    ['', 400],
    [',', 400],
    ['identity', 501],
    ['\r\nTransfer-Encoding: chunked', 400],
  ])(
    'of Transfer-Encoding %j is answered with %d, and the bytes after it are not parsed as a request',
    async (coding, status) => {
      const { port, seen } = await gateway()
      const head = `POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:${coding}\r\n\r\n`
      const received = await raw(port, `${head}0\r\n\r\n${get('/smuggled')}`)
      const alone = await raw(port, `${head}${get('/smuggled')}`)
      expect(statuses(received).concat(statuses(alone))).toEqual([`HTTP/1.1 ${status}`, `HTTP/1.1 ${status}`])
      expect(seen).toEqual([])
    },
  )
})

describe('a client that disconnects', () => {
  it('cancels all its pipelined requests', async () => {
    const entries: AccessEntry[] = []
    const { port, seen } = await gateway({ choices: { log: (entry) => entries.push(entry) } })
    const socket = connect(port, '127.0.0.1')
    socket.write(get('/never') + get('/never?2') + get('/next'))
    await expect.poll(() => seen, { timeout: 20_000 }).toContain('GET /next')
    socket.destroy()
    await expect.poll(() => entries.length, { timeout: 20_000 }).toBe(3)
    expect(entries.map(({ aborted }) => aborted)).toEqual([true, true, true])
  })
})
