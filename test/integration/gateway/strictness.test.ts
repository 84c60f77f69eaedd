/** Ambiguous requests are rejected, and nothing of them reaches an upstream. */
import { describe, expect, it } from 'vitest'
import { ask, gatewayTo, raw, upstream } from '../../fixtures/test-gateway.js'

async function strict(setup: Parameters<typeof gatewayTo>[1] = {}) {
  const seen: string[] = []
  const target = await upstream((message, response) => {
    seen.push(`${message.method} ${message.url}`)
    message
      .on('error', () => {})
      .resume()
      .on('end', () => response.end('ok'))
  })
  return { seen, ...(await gatewayTo(target, setup)) }
}

const post = (headers: string, body: string) => `POST /x HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n${body}`
const smuggled = 'GET /admin HTTP/1.1\r\nHost: a\r\n\r\n'
const chunked = 'Transfer-Encoding: chunked'

describe('a request', () => {
  it.each([
    ['two lengths that differ', post('Content-Length: 3\r\nContent-Length: 5', 'abcde')],
    ['two lengths that agree', post('Content-Length: 3\r\nContent-Length: 3', 'abc')],
    ['a list of lengths', post('Content-Length: 3, 3', 'abc')],
    ['a length with a sign', post('Content-Length: +3', 'abc')],
    ['a length and chunks', post(`Content-Length: 6\r\n${chunked}`, `0\r\n\r\n${smuggled}`)],
    ['chunks and a length', post(`${chunked}\r\nContent-Length: 6`, `0\r\n\r\n${smuggled}`)],
    ['two transfer codings', post(`${chunked}\r\nTransfer-Encoding: identity`, `0\r\n\r\n${smuggled}`)],
    ['a transfer coding with a space before its colon', post('Transfer-Encoding : chunked', `0\r\n\r\n${smuggled}`)],
    ['a folded line', post('X-A: b\r\n c', '')],
    ['a folded transfer coding', post('Transfer-Encoding:\r\n chunked', '0\r\n\r\n')],
    ['lines that end in LF alone', 'GET /x HTTP/1.1\nHost: a\n\n'],
    ['a bare CR in a value', 'GET /x HTTP/1.1\r\nHost: a\r\nX-A: b\rc\r\n\r\n'],
    ['a NUL in a value', 'GET /x HTTP/1.1\r\nHost: a\r\nX-A: b\0c\r\n\r\n'],
    ['a header without a name', 'GET /x HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n'],
    ['two hosts', 'GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
    ['a host that ends a quotation', 'GET /x HTTP/1.1\r\nHost: a";for=1.2.3.4\r\n\r\n'],
    ['an invalid host and an absolute URL', 'GET http://a/x HTTP/1.1\r\nHost: a#b\r\n\r\n'],
    ['no host', 'GET /x HTTP/1.1\r\n\r\n'],
    ['a fragment', 'GET /x#/../admin HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a URL of another scheme', 'GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['no URL', 'GET * HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a space in its URL', 'GET /x y HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a control character in its URL', 'GET /x\x01 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['chunks in HTTP/1.0', `POST /x HTTP/1.0\r\nHost: a\r\n${chunked}\r\n\r\n0\r\n\r\n`],
  ])('with %s gets 400 and is not forwarded', async (_, text) => {
    const { port, seen } = await strict()
    const received = await raw(port, text, (answer) => answer.includes('\r\n\r\n') && /}\n$/.test(answer))
    expect(received).toMatch(/^HTTP\/1\.1 400 /)
    expect(received).toContain('Content-Type: application/problem+json\r\n')
    expect(received.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
    expect(seen).toEqual([])
  })

  it('with an unknown expectation gets 417 without its body being read', async () => {
    const { port, seen } = await strict()
    const received = await raw(port, post('Expect: miracles\r\nContent-Length: 3', ''), (answer) => /}\n$/.test(answer))
    expect(received).toMatch(/^HTTP\/1\.1 417 /)
    expect(received).toContain('Content-Type: application/problem+json\r\n')
    expect(seen).toEqual([])
  })

  it.each([
    ['a size that is none', 'zz\r\nabc\r\n0\r\n\r\n'],
    ['data longer than its size', '3\r\nabcd\r\n0\r\n\r\n'],
    ['a size that ends in LF alone', '3\nabc\r\n0\r\n\r\n'],
    ['a space behind its size', '3 \r\nabc\r\n0\r\n\r\n'],
    ['a size that is too large', 'fffffffffffffffff\r\nabc\r\n0\r\n\r\n'],
    ['an extension with a line end', '3;a\nb\r\nabc\r\n0\r\n\r\n'],
  ])('whose chunks have %s gets 400 and does not look complete to an upstream', async (_, body) => {
    const { port, seen } = await strict()
    const received = await raw(port, post(chunked, `${body}${smuggled}`))
    expect(received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(received).toContain('application/problem+json')
    expect(received.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
    expect(seen).not.toContain('GET /admin')
  })

  it.each([
    ['another transfer coding', 501, post('Transfer-Encoding: gzip, chunked', '0\r\n\r\n')],
    ['a transfer coding that only resembles chunked', 501, post('Transfer-Encoding: xchunked', `0\r\n\r\n${smuggled}`)],
    ['another version', 505, 'GET /x HTTP/2.0\r\nHost: a\r\n\r\n'],
    ['another method, to make a tunnel', 405, 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'],
  ])('with %s gets %d', async (_, status, text) => {
    const { port, seen } = await strict()
    const received = await raw(port, text, (answer) => answer.endsWith('}\n'))
    expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(received.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
    expect(seen).toEqual([])
  })

  it('with a body on GET is forwarded with its body, which does not become the next request', async () => {
    const { port, seen } = await strict()
    const received = await raw(
      port,
      `GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    )
    expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(2)
    expect(seen).toEqual(['GET /a', 'GET /b'])
  })

  it('that is pipelined is answered in order', async () => {
    const { port, seen } = await strict()
    const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`
    const received = await raw(port, get('/1') + get('/2') + get('/3', 'Connection: close\r\n'))
    expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
    expect(seen).toHaveLength(3)
  })
})

describe('sizes', () => {
  const setup = { gateway: { maxUrlLength: 100, maxHeaderSize: 1_024 } }

  it('of a URL are limited: 414', async () => {
    const { url, seen } = await strict(setup)
    expect((await ask(`${url}/${'a'.repeat(99)}`)).status).toBe(200)
    expect(await ask(`${url}/${'a'.repeat(100)}`)).toMatchObject({ status: 414 })
    expect(await ask(`${url}/${'a'.repeat(5_000)}`)).toMatchObject({
      status: 414,
      headers: { 'content-type': 'application/problem+json' },
    })
    expect(seen).toHaveLength(1)
  })

  it('of headers are limited: 431', async () => {
    const { url, seen } = await strict(setup)
    expect((await ask(url, { headers: { 'X-A': 'a'.repeat(900) } })).status).toBe(200)
    expect(await ask(url, { headers: { 'X-A': 'a'.repeat(1_000) } })).toMatchObject({ status: 431 })
    expect(await ask(url, { headers: { 'X-A': 'a'.repeat(9_000) } })).toMatchObject({
      status: 431,
      headers: { 'content-type': 'application/problem+json' },
    })
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`X-${i}`, 'a']))
    expect(await ask(url, { headers: many })).toMatchObject({ status: 431 })
    expect(seen).toHaveLength(1)
  })

  it('of a HEAD that are too large get a response without a body', async () => {
    const { port } = await strict(setup)
    const received = await raw(port, `HEAD /${'a'.repeat(5_000)} HTTP/1.1\r\nHost: a\r\n\r\n`)
    expect(received).toMatch(/^HTTP\/1\.1 414 /)
    expect(received).toMatch(/\r\n\r\n$/)
  })

  it('that cannot be parsed behind a HEAD get a response that is valid for either method', async () => {
    const { port } = await strict(setup)
    const received = await raw(
      port,
      'HEAD / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n',
    )
    const [, , second] = received.split('HTTP/1.1 ')
    expect(second).toMatch(/^400 /)
    expect(second).not.toMatch(/content-length/i)
    expect(second).toMatch(/\r\nConnection: close\r\n\r\n$/)
  })

  it('of headers are limited in bytes, not in number: none is dropped', async () => {
    let count = 0
    const target = await upstream((message, response) => {
      count = message.rawHeaders.filter((name) => /^X-\d/.test(name)).length
      response.end()
    })
    target.server.on('listening', () => {})
    Object.assign(target.server, { maxHeadersCount: 0 })
    const { url } = await gatewayTo(target, { gateway: { maxHeaderSize: 65_536 } })
    const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`X-${i}`, 'a']))
    expect((await ask(url, { headers: many })).status).toBe(200)
    expect(count).toBe(1_500)
  })
})
