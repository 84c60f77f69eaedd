/** Bodies through the gateway: framing, trailers, 100-continue, responses without a body, and backpressure. */
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../fixtures/eventually.js'
import {
  answerOf,
  ask,
  deferred,
  type Echo,
  echoUpstream,
  gatewayTo,
  raw,
  sent,
  serve,
  textOf,
  upstream,
} from '../../fixtures/test-gateway.js'

describe('a request body', () => {
  it('keeps its length, or its chunks and trailers', async () => {
    const { url, port } = await gatewayTo(await echoUpstream())
    const echo = JSON.parse(
      (await ask(url, { method: 'POST', headers: { 'Content-Length': 3 }, body: 'abc' })).body,
    ) as Echo
    expect([echo.body, sent(echo, 'Content-Length'), sent(echo, 'Transfer-Encoding')]).toEqual(['abc', ['3'], []])
    const received = await raw(
      port,
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Host\r\nConnection: close\r\n\r\n' +
        '3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\nHost: evil\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n',
    )
    const chunked = JSON.parse(received.slice(received.indexOf('{'), received.lastIndexOf('}') + 1)) as Echo
    expect([chunked.body, chunked.trailers, sent(chunked, 'Content-Length')]).toEqual(['abcde', ['X-Sum', '5'], []])
    expect(sent(chunked, 'Transfer-Encoding')).toEqual(['chunked'])
  })

  it('is streamed while the client sends it, and the response may start before it ends', async () => {
    const { url } = await gatewayTo(
      await upstream((message, response) => {
        response.writeHead(200)
        message.on('data', (data) => response.write(data)).on('end', () => response.end('!'))
      }),
    )
    const outgoing = request(url, { method: 'POST', agent: false })
    outgoing.write('one')
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(String((await once(response, 'data'))[0])).toBe('one')
    outgoing.write('two')
    expect(String((await once(response, 'data'))[0])).toBe('two')
    outgoing.end()
    expect(await textOf(response)).toBe('!')
  })

  it('is stopped if the upstream rejects it early, and the client gets that response', async () => {
    const { url } = await gatewayTo(
      await upstream((_, response) => {
        response.writeHead(413, { Connection: 'close' }).end('too much')
      }),
    )
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': 2 ** 30 } })
    outgoing.on('error', () => {})
    outgoing.write(Buffer.alloc(2 ** 20))
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(await answerOf(response)).toMatchObject({ status: 413, body: 'too much' })
  })
})

describe('Expect: 100-continue', () => {
  const expecting = (url: string) => {
    const outgoing = request(url, {
      method: 'PUT',
      agent: false,
      headers: { Expect: '100-continue', 'Content-Length': 3 },
    })
    outgoing.flushHeaders()
    return outgoing
  }

  it('is answered by the upstream, and the body follows', async () => {
    const { url } = await gatewayTo(await echoUpstream())
    const outgoing = expecting(url)
    await once(outgoing, 'continue')
    outgoing.end('abc')
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const { status, body } = await answerOf(response)
    expect([status, (JSON.parse(body) as Echo).body]).toEqual([200, 'abc'])
  })

  it('gets no 100 if the upstream rejects the request', async () => {
    const target = await upstream(() => {})
    target.server.on('checkContinue', (_: IncomingMessage, response: ServerResponse) =>
      response.writeHead(401).end('no'),
    )
    const { url } = await gatewayTo(target)
    const outgoing = expecting(url)
    let wasTold = false
    outgoing.on('continue', () => {
      wasTold = true
    })
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(await answerOf(response)).toMatchObject({ status: 401, body: 'no', headers: { connection: 'close' } })
    expect(wasTold).toBe(false)
  })
})

describe('a response', () => {
  it('keeps its length or its chunks, and its trailers', async () => {
    const { url } = await gatewayTo(
      await upstream((message, response) => {
        if (message.url === '/length') response.writeHead(200, { 'Content-Length': 3 }).end('abc')
        else {
          response.writeHead(200, { Trailer: 'X-Sum' })
          response.write('abc')
          response.addTrailers({ 'X-Sum': '3', 'X-Other': 'y' })
          response.end()
        }
      }),
    )
    const withLength = await ask(`${url}/length`)
    expect(withLength).toMatchObject({ body: 'abc', headers: { 'content-length': '3' } })
    expect(withLength.headers).not.toHaveProperty('transfer-encoding')
    const chunked = await ask(`${url}/chunked`)
    expect(chunked).toMatchObject({ body: 'abc', headers: { 'transfer-encoding': 'chunked', trailer: 'X-Sum' } })
    expect(chunked.trailers).toEqual({ 'x-sum': '3', 'x-other': 'y' })
  })

  it.each([
    ['HEAD', 200, { 'content-length': '7' }],
    ['GET', 204, {}],
    ['GET', 304, { etag: '"x"', 'content-length': '7' }],
  ])('to %s with status %d has no body, and the connection stays open', async (method, status, headers) => {
    const { port } = await gatewayTo(await upstream((_, response) => response.writeHead(status, headers).end()))
    const one = `${method} / HTTP/1.1\r\nHost: a\r\n`
    const received = await raw(port, `${one}\r\n${one}Connection: close\r\n\r\n`)
    expect(received.match(new RegExp(`HTTP/1\\.1 ${status}`, 'g'))).toHaveLength(2)
    expect(received.split('\r\n\r\n').filter((part) => part !== '')).toHaveLength(2)
    for (const [name, value] of Object.entries(headers))
      expect(received.toLowerCase()).toContain(`\r\n${name}: ${value}\r\n`)
  })

  it('that ends with its connection is relayed unchanged, in chunks', async () => {
    const { url } = await gatewayTo(
      await serve(createServer((socket) => socket.end('HTTP/1.0 200 Fine\r\nX-A: b\r\n\r\nall of it'))),
    )
    expect(await ask(url)).toMatchObject({ status: 200, body: 'all of it', headers: { 'x-a': 'b' } })
  })

  it('to an HTTP/1.0 client ends with its connection', async () => {
    const { port } = await gatewayTo(
      await upstream((_, response) => {
        response.write('a')
        response.end('b')
      }),
    )
    const received = await raw(port, 'GET / HTTP/1.0\r\nHost: a\r\n\r\n')
    expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(received.split('\r\n\r\n')[1]).toBe('ab')
  })

  it('is relayed as soon as its head arrives, however slow its body is', async () => {
    const goOn = deferred()
    const { url } = await gatewayTo(
      await upstream(async (_, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
        await goOn.promise
        response.end('data: 1\n\n')
      }),
    )
    const outgoing = request(url, { agent: false }).end()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    goOn.resolve()
    expect(await textOf(response)).toBe('data: 1\n\n')
  })

  it('is preceded by its interim responses', async () => {
    const { url } = await gatewayTo(
      await upstream((_, response) => {
        response.writeEarlyHints({ link: '</a.css>; rel=preload' })
        response.end('x')
      }),
    )
    const outgoing = request(url, { agent: false }).end()
    const hints = once(outgoing, 'information')
    expect((await hints)[0]).toMatchObject({ statusCode: 103, headers: { link: '</a.css>; rel=preload' } })
  })

  it('is relayed correctly whatever the chunks in which it arrives', async () => {
    const text =
      'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x="y"\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n'
    for (const size of [1, 2, 3, 7, 50, 1_000]) {
      const target = await serve(
        createServer((socket) => {
          socket.setNoDelay(true).once('data', async () => {
            for (let at = 0; at < text.length; at += size) {
              socket.write(text.slice(at, at + size))
              await new Promise((resolve) => setImmediate(resolve))
            }
          })
        }),
      )
      const { url } = await gatewayTo(target)
      expect(await ask(url)).toMatchObject({ status: 200, body: 'hello0123456789', trailers: { 'x-t': '1' } })
    }
  })
})

describe('backpressure', () => {
  it('pauses the upstream while a slow client does not read', async () => {
    let written = 0
    let isWaiting = false
    const total = 256 * 2 ** 20
    const { port } = await gatewayTo(
      await upstream((_, response) => {
        response.writeHead(200, { 'Content-Length': total })
        const chunk = Buffer.alloc(2 ** 20)
        const fill = (): void => {
          isWaiting = false
          while (written < total && !isWaiting) {
            written += chunk.length
            isWaiting = !response.write(chunk)
          }
          if (isWaiting) response.once('drain', fill)
        }
        fill()
      }),
    )
    const client = connect(port, '127.0.0.1')
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(client, 'readable')
    let before = -1
    // Socket buffers accept some data; then the transfer stops.
    await eventually('the upstream is paused', async () => {
      const isStill = before === written && isWaiting
      before = written
      await new Promise((resolve) => setTimeout(resolve, 100))
      return isStill && before === written
    })
    expect(written).toBeLessThan(32 * 2 ** 20)
    client.resume()
    await eventually('the upstream is resumed', () => written > before)
    client.destroy()
  })

  it('pauses the client while a slow upstream does not read', async () => {
    const start = deferred()
    const target = await upstream(async (message, response) => {
      message.pause()
      await start.promise
      let bytes = 0
      for await (const data of message) bytes += data.length
      response.end(String(bytes))
    })
    const { url } = await gatewayTo(target)
    const total = 64 * 2 ** 20
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': total } })
    const chunk = Buffer.alloc(2 ** 20)
    let written = 0
    let isWaiting = false
    const fill = (): void => {
      isWaiting = false
      while (written < total && !isWaiting) {
        written += chunk.length
        isWaiting = !outgoing.write(chunk)
      }
      if (isWaiting) outgoing.once('drain', fill)
      else outgoing.end()
    }
    fill()
    let before = -1
    await eventually('the client is paused', async () => {
      const isStill = before === written && isWaiting
      before = written
      await new Promise((resolve) => setTimeout(resolve, 100))
      return isStill && before === written
    })
    expect(written).toBeLessThan(32 * 2 ** 20)
    start.resolve()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(await textOf(response)).toBe(String(total))
  })
})

describe('a peer that disconnects', () => {
  it('as a client cancels its upstream request', async () => {
    const arrived = deferred()
    const left = deferred()
    const { url } = await gatewayTo(
      await upstream((message) => {
        arrived.resolve()
        message.once('close', left.resolve)
      }),
    )
    const outgoing = request(url, { agent: false }).end()
    outgoing.on('error', () => {})
    await arrived.promise
    outgoing.destroy()
    await left.promise
  })

  it('as a client during an upload leaves the upstream an aborted request, not a complete one', async () => {
    const seen = deferred<string>()
    const arrived = deferred()
    const { url } = await gatewayTo(
      await upstream((message) => {
        arrived.resolve()
        message.on('data', () => {})
        message.once('end', () => seen.resolve('complete')).once('error', () => seen.resolve('cut off'))
      }),
    )
    for (const headers of [{ 'Content-Length': 10 }, { 'Transfer-Encoding': 'chunked' }]) {
      const outgoing = request(url, { method: 'POST', agent: false, headers })
      outgoing.on('error', () => {})
      outgoing.write('abc')
      await arrived.promise
      outgoing.destroy()
      expect(await seen.promise).toBe('cut off')
    }
  })

  it.each([
    ['in the middle of a length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'],
    ['in the middle of chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'],
  ])('as an upstream %s leaves the client a truncated response, not a complete one', async (_, text) => {
    const { port } = await gatewayTo(await serve(createServer((socket) => socket.write(text, () => socket.end()))))
    const received = await raw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(received).toContain('abc')
    expect(received).not.toMatch(/\r\n0\r\n\r\n$/)
    const outgoing = request(`http://127.0.0.1:${port}/`, { agent: false }).end()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    await expect(textOf(response)).rejects.toThrow('aborted')
  })
})
