/**
 * No upstream response ends the process or reaches the wrong client. A response that cannot be relayed results in 502
 * or is cut off.
 */
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, deferred, gatewayTo, gatewayWith, raw, serve } from '../../fixtures/test-gateway.js'

/** Sends these bytes in response to every request and then closes. */
const answering = (response: string | Buffer) =>
  serve(
    createServer((socket) => {
      const bytes = typeof response === 'string' ? Buffer.from(response, 'latin1') : response
      socket.on('error', () => {}).once('data', () => socket.end(bytes))
    }),
  )

/** Calls back for each request on each connection. Sockets are in connection order. */
async function scripted(onRequest: (socket: Socket, text: string) => void) {
  const sockets: Socket[] = []
  const target = await serve(
    createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {}).on('data', (data) => onRequest(socket, data.toString('latin1')))
    }),
  )
  return { target, sockets }
}

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const length = 'Content-Length: 2\r\n\r\nok'
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const get = (path: string, version = '1.1') => `GET ${path} HTTP/${version}\r\nHost: a\r\n\r\n`
const upgrade =
  'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'

describe('an upstream response', () => {
  it.each([
    ['a control character in its reason phrase', [200, 502], `HTTP/1.1 200 O\x01K\r\n${length}`],
    ['an escape sequence in its reason phrase', [200, 502], `HTTP/1.1 200 \x1b[31mOK\x7f\r\n${length}`],
    ['bytes beyond ASCII in its reason phrase', [200, 502], `HTTP/1.1 200 \xe4\xff\x80\r\n${length}`],
    ['a reason phrase of UTF-8', [200, 502], Buffer.from(`HTTP/1.1 200 ✓ 好\r\n${length}`)],
    ['no reason phrase', [200], `HTTP/1.1 200\r\n${length}`],
    ['a status without a meaning', [799], `HTTP/1.1 799 Odd\r\n${length}`],
    ['a control character in a value', [502], `HTTP/1.1 200 OK\r\nX-A: a\x02b\r\n${length}`],
    ['DEL in a value', [502], `HTTP/1.1 200 OK\r\nX-A: a\x7fb\r\n${length}`],
    ['NUL in a value', [502], `HTTP/1.1 200 OK\r\nX-A: a\0b\r\n${length}`],
    ['bytes beyond ASCII in a value', [200], `HTTP/1.1 200 OK\r\nX-A: \xe4\xff\r\n${length}`],
    ['a name that is not a token', [502], `HTTP/1.1 200 OK\r\nX(A): b\r\n${length}`],
    ['version 0.9', [502], 'HTTP/0.9 200 OK\r\n\r\nok'],
    ['version 2.0', [502], `HTTP/2.0 200 OK\r\n${length}`],
    ['a status of 000', [502], `HTTP/1.1 000 No\r\n${length}`],
    ['a status of 099', [502], `HTTP/1.1 099 No\r\n${length}`],
    ['a status of 1000', [502], `HTTP/1.1 1000 No\r\n${length}`],
    ['an early hint without a target', [200], `HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n${ok}`],
    ['an invalid early hint', [200, 502], `HTTP/1.1 103 Hints\r\nLink: <\x01>\r\n\r\n${ok}`],
    ['a body behind an early hint', [502], `HTTP/1.1 103 Hints\r\nContent-Length: 2\r\n\r\nok${ok}`],
    ['an unrequested 100', [502], `HTTP/1.1 100 Continue\r\n\r\n${ok}`],
    ['a 101 without Upgrade', [502], 'HTTP/1.1 101 Switching Protocols\r\n\r\nabc'],
    ['a 101 to another protocol', [502], 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nabc'],
    ['a control character in a trailer', [200, 502, 'cut off'], `${chunked}0\r\nX-T: \x01\r\n\r\n`],
    ['a framing header as a trailer', [200, 502, 'cut off'], `${chunked}0\r\nContent-Length: 5\r\n\r\n`],
  ])('with %s does not end the process', async (_, expected, response) => {
    const { url, port } = await gatewayTo(await answering(response))
    for (let i = 0; i < 2; i++) {
      const outcome = await ask(url).catch(() => undefined)
      expect(expected).toContain(outcome?.status ?? 'cut off')
      if (outcome?.status === 502) expect(outcome.headers['content-type']).toBe('application/problem+json')
    }
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(await raw(port, upgrade)) ?? []
    expect(expected).toContain(Number(status))
  })

  it('whose head arrives byte by byte must arrive completely within the response timeout', async () => {
    const { target, sockets } = await scripted((socket) => {
      socket.setNoDelay().write('HTTP/1.1 200 OK\r\n')
      const drip = setInterval(() => socket.write('X-A: b\r\n'), 20)
      socket.once('close', () => clearInterval(drip))
    })
    const { url } = await gatewayTo(target, { gateway: { responseTimeout: '200ms' } })
    expect(await ask(url)).toMatchObject({ status: 504 })
    await expect.poll(() => sockets[0]?.destroyed).toBe(true)
  })

  it('to HEAD with a body does not become the next response', async () => {
    const { target, sockets } = await scripted((socket, text) => {
      const [method] = text.split(' ')
      socket.write(method === 'HEAD' ? `${ok}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil` : ok)
    })
    const { url, port } = await gatewayTo(target)
    const replies = await raw(port, `HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    expect(replies).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*\r\n$/)
    expect(await ask(url)).toMatchObject({ status: 200, body: 'ok' })
    expect(sockets).toHaveLength(2)
  })

  it('with status 204 is relayed without Content-Length', async () => {
    const { port } = await gatewayTo(await answering('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\nX-A: b\r\n\r\n'))
    const replies = await raw(port, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    expect(replies).toMatch(/^HTTP\/1\.1 204 No Content\r\nX-A: b\r\n/)
    expect(replies.toLowerCase()).not.toContain('content-length')
  })

  it('without a length that is reset is truncated, not complete', async () => {
    const { target, sockets } = await scripted((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\npart'))
    const { url } = await gatewayTo(target)
    const outgoing = request(url, { agent: false }).end()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    response.on('error', () => {}).once('data', () => sockets[0]?.resetAndDestroy())
    await new Promise((resolve) => response.once('close', resolve))
    expect(response.complete).toBe(false)
  })
})

describe('a close-delimited response that the upstream cuts off', () => {
  const answers = ['HTTP/1.1 200 OK\r\n\r\npart', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\npart']

  it.each([
    ['to a client of HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
    ['to an upgrade request', 'GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'],
  ])('%s ends with a reset', async (_, text) => {
    for (const answer of answers) {
      const { target, sockets } = await scripted((socket) => socket.write(answer))
      const { port } = await gatewayTo(target)
      const client = connect(port, '127.0.0.1')
      client.write(text)
      let received = ''
      client.on('data', (data) => {
        received += data
        if (received.endsWith('part')) sockets[0]?.resetAndDestroy()
      })
      const [error] = await once(client, 'error')
      expect(error).toMatchObject({ code: 'ECONNRESET' })
      expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)+\r\npart$/)
    }
  })
})

describe('interim responses', () => {
  const hint = (size = 10) => `HTTP/1.1 103 Early Hints\r\nLink: </${'a'.repeat(size)}>; rel=preload\r\n\r\n`

  it('are relayed up to 16 times', async () => {
    const { port } = await gatewayTo(await answering(hint().repeat(16) + ok))
    const replies = await raw(port, get('/'), (text) => text.endsWith('ok'))
    expect(replies.match(/HTTP\/1\.1 103/g)).toHaveLength(16)
    expect(replies).toContain('HTTP/1.1 200 OK\r\n')
  })

  it('beyond that result in 502, and the upstream connection is closed', async () => {
    const { target, sockets } = await scripted((socket) => {
      const flood = (): void => {
        while (!socket.destroyed && socket.write(hint(1_000)));
        socket.once('drain', flood)
      }
      flood()
    })
    const { url } = await gatewayTo(target)
    expect(await ask(url)).toMatchObject({ status: 502 })
    await expect.poll(() => sockets[0]?.destroyed).toBe(true)
  })

  it('are not sent to HTTP/1.0 clients', async () => {
    const { port } = await gatewayTo(await answering(hint() + ok))
    expect(await raw(port, get('/', '1.0'))).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  it('are dropped while they cannot be sent', async () => {
    const first = deferred<Socket>()
    const { target } = await scripted((socket, text) => {
      if (text.startsWith('GET /1')) first.resolve(socket)
      else if (text.startsWith('GET /2')) socket.write(hint(8_000).repeat(16) + ok)
      else socket.write(ok)
    })
    const { url, port } = await gatewayTo(target, { gateway: { maxConnections: 2, clientShare: 1 } })
    // The second response must wait for the first.
    const replies = raw(port, get('/1') + get('/2'), (text) => text.split('ok').length > 2)
    const socket = await first.promise
    // With two connections in use, this request is served only after the second response has arrived.
    expect(await ask(`${url}/3`)).toMatchObject({ body: 'ok' })
    socket.write(ok)
    expect(await replies).not.toContain('HTTP/1.1 103')
  })

  it('are dropped while the client does not read', async () => {
    const { port, running } = await gatewayTo(await answering(hint().repeat(16) + ok))
    // Simulates a full socket buffer.
    running.server.prependListener('request', (_, response: ServerResponse) => {
      Object.defineProperty(response, 'writableLength', { value: response.writableHighWaterMark })
    })
    const replies = await raw(port, get('/'), (text) => text.endsWith('ok'))
    expect(replies).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  it('that request a body wait for the preceding response', async () => {
    const first = deferred<Socket>()
    const { target } = await scripted((socket, text) => {
      if (text.startsWith('GET /1')) first.resolve(socket)
      else if (text.startsWith('PUT')) socket.write('HTTP/1.1 100 Continue\r\n\r\n')
      else if (text === 'hello') socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone')
      else socket.write(ok)
    })
    const { url, port } = await gatewayTo(target)
    const client = connect(port, '127.0.0.1').setEncoding('latin1')
    onTestFinished(() => void client.destroy())
    let replies = ''
    client.on('data', (data: string) => {
      replies += data
      if (data.includes('100 Continue')) client.write('hello')
    })
    client.write(`${get('/1')}PUT /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`)
    const socket = await first.promise
    expect(await ask(`${url}/3`)).toMatchObject({ body: 'ok' })
    socket.write(ok)
    await expect.poll(() => replies).toContain('done')
    expect(replies.match(/HTTP\/1\.1 \d+|ok$|done$/gm)).toEqual([
      'HTTP/1.1 200',
      'HTTP/1.1 100',
      'HTTP/1.1 200',
      'done',
    ])
    expect(replies).toContain('\r\n\r\nokHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n')
  })
})

describe('a client that disconnects', () => {
  it('while its upstream connection is being opened frees it for the next request', async () => {
    const mute = await scripted(() => {})
    const { url } = await gatewayWith({
      routes: [{ id: 'all', uri: `https://127.0.0.1:${mute.target.port}` }],
      gateway: { maxConnections: 1, connectTimeout: '1h' },
    })
    for (let i = 0; i < 3; i++) {
      const outgoing = request(url, { agent: false }).end()
      outgoing.on('error', () => {})
      await expect.poll(() => mute.sockets.length).toBe(i + 1)
      outgoing.destroy()
      await expect.poll(() => mute.sockets[i]?.destroyed).toBe(true)
    }
    onTestFinished(() => {
      for (const socket of mute.sockets) socket.destroy()
    })
  })
})
