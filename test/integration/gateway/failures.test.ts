/** Upstreams that are unavailable, slow, broken or busy, and the few requests that may be retried. */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { answerOf, ask, deferred, gatewayTo, gatewayWith, serve, upstream } from '../../fixtures/test-gateway.js'
import { freePort } from '../../servers/free-port.js'
import { selfSigned } from '../../servers/self-signed.js'

const problem = (status: number, title: string, detail: string) => ({
  status,
  headers: { 'content-type': 'application/problem+json' },
  body: `${JSON.stringify({ type: 'about:blank', title, status, detail })}\n`,
})
const refused = problem(502, 'Bad Gateway', 'The service behind this gateway cannot be reached.')
const broken = problem(502, 'Bad Gateway', 'The service behind this gateway sent an invalid response.')
const late = problem(504, 'Gateway Timeout', 'The service behind this gateway did not answer in time.')

describe('an upstream', () => {
  it('that is down results in 502, and is used again after it recovers', async () => {
    const port = await freePort()
    const { url } = await gatewayWith({ routes: [{ id: 'all', uri: `http://127.0.0.1:${port}` }] })
    expect(await ask(url)).toMatchObject(refused)
    const server = createServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\nback')))
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    expect(await ask(url)).toMatchObject({ status: 200, body: 'back' })
    server.close()
    await once(server, 'close')
    expect(await ask(url)).toMatchObject(refused)
  })

  it('whose name is unknown results in 502', async () => {
    const { url } = await gatewayWith({ routes: [{ id: 'all', uri: 'http://nowhere.invalid' }] })
    expect(await ask(url)).toMatchObject(refused)
  })

  it('that does not respond or accept a connection in time results in 504', async () => {
    const { url } = await gatewayTo(await upstream(() => {}), { gateway: { responseTimeout: '100ms' } })
    expect(await ask(url)).toMatchObject(late)
    // The TLS handshake never completes.
    const mute = await serve(createServer(() => {}))
    const secure = await gatewayWith({
      routes: [{ id: 'all', uri: `https://127.0.0.1:${mute.port}` }],
      gateway: { connectTimeout: '100ms' },
    })
    expect(await ask(secure.url)).toMatchObject(late)
  })

  it('has the timeout of its route', async () => {
    const slow = await upstream((_, response) => void setTimeout(() => response.end('late'), 400))
    const mute = await serve(createServer(() => {}))
    const { url } = await gatewayWith({
      gateway: { responseTimeout: '100ms', connectTimeout: '1h' },
      routes: [
        { id: 'slow-route', uri: slow.url, predicates: ['Path=/slow-route'], metadata: { 'response-timeout': '1h' } },
        {
          id: 'secure',
          uri: `https://127.0.0.1:${mute.port}`,
          predicates: ['Path=/secure'],
          metadata: { connectTimeout: 50 },
        },
        { id: 'usual', uri: slow.url },
      ],
    })
    const answers = await Promise.all(['/slow-route', '/secure', '/usual'].map((path) => ask(url + path)))
    expect(answers).toMatchObject([{ status: 200, body: 'late' }, late, late])
  })

  it('that stalls in the middle of a body is abandoned, and the client sees a truncated response', async () => {
    const { url } = await gatewayTo(
      await upstream((_, response) => {
        response.write('a')
      }),
      { gateway: { idleTimeout: '100ms' } },
    )
    await expect(ask(url)).rejects.toThrow('aborted')
  })

  it('is not blamed if the client stops sending', async () => {
    const { url } = await gatewayTo(await upstream((message) => message.resume()), {
      gateway: { responseTimeout: '100ms' },
    })
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': 10 } })
    outgoing.on('error', () => {})
    outgoing.write('abc')
    const [response] = await once(outgoing, 'response')
    expect(await answerOf(response)).toMatchObject({ status: 408 })
  })

  it.each([
    ['says nothing', ''],
    ['does not speak HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
    ['has a status that is none', 'HTTP/1.1 042 OK\r\n\r\n'],
    ['speaks HTTP/2', 'HTTP/2 200 OK\r\n\r\n'],
    ['gives two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd'],
    ['gives a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc'],
    [
      'gives a length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['has another transfer coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['folds a line', 'HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n'],
    ['has a name with a space', 'HTTP/1.1 200 OK\r\nX A: b\r\nContent-Length: 0\r\n\r\n'],
    ['has a value with a line end', 'HTTP/1.1 200 OK\r\nX-A: b\nX-B: c\r\nContent-Length: 0\r\n\r\n'],
    ['has headers without end', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(70_000)}\r\n\r\n`],
    ['changes the protocol unasked', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'],
    ['closes within the headers', 'HTTP/1.1 200 OK\r\nX-A'],
  ])('that %s results in 502', async (_, text) => {
    const { url } = await gatewayTo(await serve(createServer((socket) => socket.once('data', () => socket.end(text)))))
    expect(await ask(url)).toMatchObject(broken)
  })

  it('that greets in another protocol and waits results in 502 at once', async () => {
    const { url } = await gatewayTo(await serve(createServer((socket) => void socket.write('SSH-2.0-OpenSSH_9.6\r\n'))))
    expect(await ask(url)).toMatchObject(broken)
  })

  it('may send its status line byte by byte', async () => {
    const text = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
    const slow = createServer((socket) => {
      socket.setNoDelay().once('data', async () => {
        for (const letter of text) await new Promise((resolve) => socket.write(letter, resolve))
      })
    })
    const { url } = await gatewayTo(await serve(slow))
    expect(await ask(url)).toMatchObject({ status: 200, body: 'ok' })
  })

  it.each([
    ['a size that is none', 'x\r\nabc\r\n'],
    ['a size without digits', '\r\nabc\r\n'],
    ['a size that is too large', 'fffffffffffffffff\r\nabc\r\n'],
    ['data longer than its size', '3\r\nabcd\r\n'],
    ['a size that ends in LF alone', '3\nabc\r\n'],
    ['a trailer without a name', '0\r\nabc\r\n\r\n'],
  ])('whose chunks have %s is cut off', async (_, text) => {
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n'
    const { url } = await gatewayTo(
      await serve(
        createServer((socket) => {
          socket
            .on('error', () => {})
            .once('data', () => {
              socket.write(head)
              setImmediate(() => socket.write(text))
            })
        }),
      ),
    )
    await expect(ask(url)).rejects.toThrow(/aborted|hang up/)
  })

  it('whose connections are all in use results in 503 after the queue timeout; other queued requests proceed', async () => {
    const held = deferred()
    const arrived = deferred()
    const { url } = await gatewayTo(
      await upstream(async (message, response) => {
        if (message.url === '/held') {
          arrived.resolve()
          await held.promise
        }
        response.end(message.url)
      }),
      { gateway: { maxConnections: 1, connectTimeout: '200ms' } },
    )
    const first = ask(`${url}/held`)
    await arrived.promise
    expect(await ask(`${url}/late`)).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    const next = ask(`${url}/next`)
    held.resolve()
    expect([(await first).body, (await next).body]).toEqual(['/held', '/next'])
  })

  it('with https:// must have a trusted certificate', async () => {
    const { cert, key } = selfSigned()
    const secure = await serve(createSecureServer({ cert, key }, (message, response) => response.end(message.url)))
    const { url } = await gatewayWith({ routes: [{ id: 'all', uri: `https://localhost:${secure.port}` }] })
    expect(await ask(`${url}/x`)).toMatchObject(refused)
  })
})

describe('connections to an upstream', () => {
  /** Answers each request; the test controls its connections. */
  async function counting(onRequest: (socket: Socket, count: number, text: string) => void) {
    const sockets: Socket[] = []
    let count = 0
    const target = await serve(
      createServer((socket) => {
        sockets.push(socket)
        socket.on('error', () => {}).on('data', (data) => onRequest(socket, ++count, String(data)))
      }),
    )
    return { target, sockets, requests: () => count }
  }
  const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

  it('are reused, one request at a time', async () => {
    const held: Socket[] = []
    const { target, sockets } = await counting((socket, count) => {
      if (count <= 5) socket.write(ok)
      else held.push(socket)
      // The last three requests are answered once all of them have arrived.
      if (held.length === 3) for (const waiting of held) waiting.write(ok)
    })
    const { url } = await gatewayTo(target)
    for (let i = 0; i < 5; i++) expect((await ask(url)).body).toBe('ok')
    expect(sockets).toHaveLength(1)
    await Promise.all([1, 2, 3].map(() => ask(url)))
    expect(sockets).toHaveLength(3)
  })

  it('are not reused after Connection: close, HTTP/1.0 or surplus bytes', async () => {
    const answers = [
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
      `${ok}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`,
      'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok',
      ok,
    ]
    const { target, sockets } = await counting((socket, count) => socket.write(answers[count - 1] ?? ok))
    const { url } = await gatewayTo(target)
    for (const _ of answers) expect((await ask(url)).body).toBe('ok')
    expect(sockets).toHaveLength(4)
  })

  it.each([
    ['closed', (socket: Socket) => socket.destroy()],
    ['reset', (socket: Socket) => socket.resetAndDestroy()],
  ])('that are %s while idle fail no request', async (_, end) => {
    const { target, sockets, requests } = await counting((socket) => socket.write(ok))
    const { url } = await gatewayTo(target)
    await ask(url)
    end(sockets[0] as Socket)
    expect(await ask(url)).toMatchObject({ status: 200, body: 'ok' })
    expect(requests()).toBe(2)
  })

  it.each([
    ['GET', undefined],
    ['DELETE', undefined],
    ['POST', undefined],
    ['PUT', 'x'],
    ['PATCH', undefined],
  ])(
    'that close after a %s was sent fail the request, because the upstream may have processed it',
    async (method, body) => {
      for (const end of ['destroy', 'resetAndDestroy'] as const) {
        const { target, requests } = await counting((socket, count) => {
          if (count === 2) socket[end]()
          else socket.write(ok)
        })
        const { url } = await gatewayTo(target)
        await ask(url)
        expect(await ask(url, { method, ...(body !== undefined && { body }) })).toMatchObject(broken)
        expect(requests()).toBe(2)
      }
    },
  )

  it('are not retried if they were new or a response had started', async () => {
    const { target, requests } = await counting((socket, count) => {
      if (count === 1) socket.destroy()
      else if (count === 2) socket.write(ok)
      else socket.end('HTTP/1.1 200')
    })
    const { url } = await gatewayTo(target)
    expect(await ask(url)).toMatchObject(broken)
    expect(await ask(url)).toMatchObject({ status: 200 })
    expect(await ask(url)).toMatchObject(broken)
    expect(requests()).toBe(3)
  })

  it('close when idle', async () => {
    const { target, sockets } = await counting((socket) => socket.write(ok))
    const { url } = await gatewayTo(target, { gateway: { keepAlive: '50ms' } })
    await ask(url)
    await once(sockets[0] as Socket, 'close')
    expect((await ask(url)).body).toBe('ok')
  })

  it('from clients are kept alive too', async () => {
    const { target } = await counting((socket) => socket.write(ok))
    const { url, running } = await gatewayTo(target)
    let connections = 0
    running.server.on('connection', () => {
      connections += 1
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    for (let i = 0; i < 3; i++) await ask(url, { agent })
    expect(connections).toBe(1)
  })
})
