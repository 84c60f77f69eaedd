/** Bytes from one client never become part of another request, and no upstream response reaches another client. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, gatewayTo, raw, serve, upstream } from '../../fixtures/test-gateway.js'

const upgrade = (more: string) =>
  `GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n${more}\r\n`
const smuggled = 'GET /admin HTTP/1.1\r\nHost: a\r\n\r\n'

/** Counts its connections and records every byte that it receives. */
async function recorder(answer: (socket: Socket, count: number) => void) {
  const sockets: Socket[] = []
  const received: string[] = []
  let count = 0
  const target = await serve(
    createServer((socket) => {
      sockets.push(socket)
      socket
        .on('error', () => {})
        .on('data', (data) => {
          received.push(data.toString('latin1'))
          answer(socket, ++count)
        })
    }),
  )
  return { target, sockets, received }
}

describe('an upgrade request', () => {
  it.each([
    ['a length', 'Content-Length: 35\r\n', smuggled],
    ['a length of zero', 'Content-Length: 0\r\n', ''],
    ['chunks', 'Transfer-Encoding: chunked\r\n', `23\r\n${smuggled}\r\n0\r\n\r\n`],
    ['an empty transfer coding', 'Transfer-Encoding:\r\n', smuggled],
  ])('with %s is rejected with 400, closes the connection and reaches no upstream', async (_, headers, body) => {
    const { target, received } = await recorder((socket) => socket.end())
    const { port } = await gatewayTo(target)
    const replies = await raw(port, `${upgrade(headers)}${body}${smuggled}`)
    expect(replies).toMatch(/^HTTP\/1\.1 400 /)
    expect(replies).toContain('Content-Type: application/problem+json\r\n')
    expect(replies).toContain('Connection: close\r\n')
    expect(replies.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
    expect(received).toEqual([])
  })

  it('that an upstream declines leaves a connection that is not reused', async () => {
    const { target, sockets } = await recorder((socket, count) =>
      socket.write(`HTTP/1.1 ${count === 1 ? 426 : 200} X\r\nContent-Length: 2\r\n\r\nok`),
    )
    const { url, port } = await gatewayTo(target)
    expect(await raw(port, upgrade(''))).toMatch(/^HTTP\/1\.1 426 /)
    expect(await ask(url)).toMatchObject({ status: 200, body: 'ok' })
    expect(sockets).toHaveLength(2)
    await expect.poll(() => sockets[0]?.destroyed, { timeout: 30_000 }).toBe(true)
  })

  it('is not forwarded with the bytes that follow it, unless the upstream accepts', async () => {
    const { target, received } = await recorder((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
    )
    const { port } = await gatewayTo(target)
    expect(await raw(port, `${upgrade('')}${smuggled}`)).toMatch(/^HTTP\/1\.1 200 /)
    expect(received.join('')).not.toContain('/admin')
  })
})

describe('clients that share an upstream connection', () => {
  it('each get their own response, whatever bytes a rejected upgrade left', async () => {
    const target = await upstream((message, response) => response.end(message.url))
    const { url, port } = await gatewayTo(target, { gateway: { maxConnections: 1 } })
    const attacker = connect(port, '127.0.0.1')
    onTestFinished(() => void attacker.destroy())
    attacker.on('error', () => {}).resume()
    for (let i = 0; i < 5; i++) {
      attacker.write(`${upgrade('Content-Length: 100\r\n')}`)
      expect(await ask(`${url}/victim-${i}`)).toMatchObject({ status: 200, body: `/victim-${i}` })
    }
    if (!attacker.destroyed) await once(attacker, 'close')
  })
})
