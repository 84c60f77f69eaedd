/** No response of an upstream ends the process: what cannot be relayed is 502, and the next request is served. */
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { ask, gatewayTo, raw, serve } from './gateway-bed.js'

/** Sends these bytes as its response to every request and then closes, so that each test sees all of them. */
const answering = (response: string | Buffer) =>
  serve(
    createServer((socket) => {
      const bytes = typeof response === 'string' ? Buffer.from(response, 'latin1') : response
      socket.on('error', () => {}).once('data', () => socket.end(bytes))
    }),
  )

const length = 'Content-Length: 2\r\n\r\nok'
const upgrade =
  'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'

describe('an upstream response', () => {
  it.each([
    ['a control character in its reason phrase', `HTTP/1.1 200 O\x01K\r\n${length}`],
    ['an escape sequence in its reason phrase', `HTTP/1.1 200 \x1b[31mOK\x7f\r\n${length}`],
    ['bytes beyond ASCII in its reason phrase', `HTTP/1.1 200 \xe4\xff\x80\r\n${length}`],
    ['a reason phrase of UTF-8', Buffer.from(`HTTP/1.1 200 ✓ 好\r\n${length}`)],
    ['no reason phrase', `HTTP/1.1 200\r\n${length}`],
    ['a status that nobody knows', `HTTP/1.1 799 Odd\r\n${length}`],
    ['a control character in a value', `HTTP/1.1 200 OK\r\nX-A: a\x02b\r\n${length}`],
    ['DEL in a value', `HTTP/1.1 200 OK\r\nX-A: a\x7fb\r\n${length}`],
    ['NUL in a value', `HTTP/1.1 200 OK\r\nX-A: a\0b\r\n${length}`],
    ['bytes beyond ASCII in a value', `HTTP/1.1 200 OK\r\nX-A: \xe4\xff\r\n${length}`],
    ['a name that is not a token', `HTTP/1.1 200 OK\r\nX(A): b\r\n${length}`],
    ['a status of 000', `HTTP/1.1 000 No\r\n${length}`],
    ['a status of 099', `HTTP/1.1 099 No\r\n${length}`],
    ['a status of 1000', `HTTP/1.1 1000 No\r\n${length}`],
    ['an early hint without a target', `HTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n${length}`],
    [
      'a trailer that is a framing header',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n',
    ],
  ])('with %s does not end the process', async (_, response) => {
    const { url, port } = await gatewayTo(await answering(response))
    const statuses = [200, 502, 799]
    for (let i = 0; i < 2; i++) {
      const answer = await ask(url)
      expect(statuses).toContain(answer.status)
      if (answer.status === 502) expect(answer.headers['content-type']).toBe('application/problem+json')
    }
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(await raw(port, upgrade)) ?? []
    expect(statuses).toContain(Number(status))
  })
})
