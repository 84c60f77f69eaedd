import { describe, expect, it } from 'vitest'
import { parseRequest, parseResponse } from './http-parser.js'

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
const request = (text: string) => parseRequest(bytes(text))
const get = 'GET /a HTTP/1.1\r\nHost: a\r\n'
const post = (headers: string, body = '') => `POST /a HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n${body}`

describe('a request', () => {
  it('has a method, a target, headers and a body, and ends where its length says', () => {
    const text = post('Content-Length: 3\r\nX-A: \t b c \t', 'abcGET')
    expect(request(text)).toEqual({
      kind: 'complete',
      end: text.length - 3,
      message: {
        method: 'POST',
        target: '/a',
        objection: undefined,
        version: '1.1',
        headers: [
          ['Host', 'a'],
          ['Content-Length', '3'],
          ['X-A', 'b c'],
        ],
        body: bytes('abc'),
        trailers: [],
        closes: false,
      },
    })
  })

  it('may have chunks with extensions, and trailers', () => {
    const text = post('Transfer-Encoding: Chunked', '3;a=b;c="d e"\r\nabc\r\n1\r\nd\r\n0\r\nX-T: 1\r\n\r\n')
    expect(request(text)).toMatchObject({
      kind: 'complete',
      end: text.length,
      message: { body: bytes('abcd'), trailers: [['X-T', '1']] },
    })
  })

  it('is incomplete before each of its last bytes', () => {
    for (const text of [
      post('Content-Length: 3', 'abc'),
      post('Transfer-Encoding: chunked', '3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n'),
    ])
      for (let end = 0; end < text.length; end++) expect(request(text.slice(0, end)).kind).toBe('incomplete')
  })

  it.each([
    ['HTTP/1.1 with close', `${get}Connection: x, Close\r\n\r\n`, true],
    ['HTTP/1.1', `${get}\r\n`, false],
    ['HTTP/1.0', 'GET /a HTTP/1.0\r\n\r\n', true],
    ['HTTP/1.0 with keep-alive', 'GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', false],
  ])('of %s closes its connection: %s', (_, text, closes) => {
    expect(request(text)).toMatchObject({ kind: 'complete', message: { closes } })
  })

  it('may follow empty lines', () => {
    expect(request(`\r\n\r\n${get}\r\n`)).toMatchObject({ kind: 'complete', message: { method: 'GET' } })
  })

  it.each([
    ['bare LF', 'GET /a HTTP/1.1\nHost: a\n\n'],
    ['a bare CR', `${get}X-A: b\rc\r\n\r\n`],
    ['NUL in a value', `${get}X-A: b\0c\r\n\r\n`],
    ['a folded line', `${get}X-A: b\r\n c\r\n\r\n`],
    ['a space before the colon', `${get}X-A : b\r\n\r\n`],
    ['a header without a name', `${get}: b\r\n\r\n`],
    ['a header without a colon', `${get}X-A\r\n\r\n`],
    ['two spaces in its first line', 'GET  /a HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a space in its target', 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a control character in its target', 'GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a byte above 127 in its target', 'GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['another version', 'GET /a HTTP/2.0\r\nHost: a\r\n\r\n'],
  ])('with %s has invalid syntax', (_, text) => {
    expect(request(text)).toMatchObject({ kind: 'invalid', layer: 'syntax' })
  })

  it.each([
    ['no host', 'GET /a HTTP/1.1\r\n\r\n', 'no Host header'],
    ['two hosts', `${get}Host: a\r\n\r\n`, 'two Host headers'],
    ['a host with a slash', 'GET /a HTTP/1.1\r\nHost: a/b\r\n\r\n', 'Host "a/b"'],
  ])('with %s must be rejected, but has a certain end', (_, text, objection) => {
    expect(request(text)).toMatchObject({ kind: 'complete', end: text.length, message: { objection } })
  })

  it.each([
    ['two lengths', post('Content-Length: 3\r\nContent-Length: 3', 'abc')],
    ['a list of lengths', post('Content-Length: 3, 3', 'abc')],
    ['a length with a sign', post('Content-Length: +3', 'abc')],
    ['an empty length', post('Content-Length:', 'abc')],
    ['a hexadecimal length', post('Content-Length: 0x3', 'abc')],
    ['a length and chunks', post('Content-Length: 3\r\nTransfer-Encoding: chunked', '0\r\n\r\n')],
    ['an empty transfer coding', post('Transfer-Encoding:', '0\r\n\r\n')],
    ['chunked before another coding', post('Transfer-Encoding: chunked, gzip', '0\r\n\r\n')],
    ['chunked twice', post('Transfer-Encoding: chunked, chunked', '0\r\n\r\n')],
    ['chunks in HTTP/1.0', 'POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a size that is not a number', post('Transfer-Encoding: chunked', 'zz\r\n')],
    ['a size with a sign', post('Transfer-Encoding: chunked', '+3\r\n')],
    ['a size with a prefix', post('Transfer-Encoding: chunked', '0x3\r\n')],
    ['a space behind a size', post('Transfer-Encoding: chunked', '3 \r\n')],
    ['a size that ends in LF', post('Transfer-Encoding: chunked', '3\nabc\r\n')],
    ['an extension with a CR', post('Transfer-Encoding: chunked', '3;a\rb\r\nabc\r\n')],
    ['a chunk longer than its size', post('Transfer-Encoding: chunked', '3\r\nabcd\r\n')],
    ['a chunk that ends in LF', post('Transfer-Encoding: chunked', '3\r\nabc\n0\r\n\r\n')],
  ])('with %s has invalid framing', (_, text) => {
    expect(request(text)).toMatchObject({ kind: 'invalid', layer: 'framing' })
  })
})

describe('a response', () => {
  const response = (text: string, method = 'GET', ended = false) => parseResponse(bytes(text), method, ended)

  it('has a status, a reason and a body', () => {
    const text = 'HTTP/1.1 200 All right\r\nContent-Length: 2\r\n\r\nokHTTP'
    expect(response(text)).toMatchObject({
      kind: 'complete',
      end: text.length - 4,
      message: { status: 200, reason: 'All right', body: bytes('ok'), closes: false },
    })
  })

  it('without a length ends with its connection', () => {
    const text = 'HTTP/1.1 200 OK\r\n\r\nok'
    expect(response(text)).toEqual({ kind: 'incomplete', startLine: 'HTTP/1.1 200 OK' })
    expect(response(text, 'GET', true)).toMatchObject({
      kind: 'complete',
      message: { body: bytes('ok'), closes: true },
    })
  })

  it('with a length is incomplete if its connection ends before', () => {
    expect(response('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok', 'GET', true).kind).toBe('incomplete')
  })

  it.each([
    ['to HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'HEAD'],
    ['304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', 'GET'],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n', 'GET'],
    ['100', 'HTTP/1.1 100 Continue\r\n\r\n', 'GET'],
  ])('%s has no body', (_, head, method) => {
    expect(response(`${head}HTTP`, method)).toMatchObject({ end: head.length, message: { body: bytes('') } })
  })

  it.each([
    ['a control character in its reason', 'HTTP/1.1 200 a\x01b\r\n\r\n', 'syntax'],
    ['no space behind its status', 'HTTP/1.1 200\r\n\r\n', 'syntax'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n', 'syntax'],
    ['another protocol', 'ICY 200 OK\r\n\r\n', 'syntax'],
    ['a length with 204', 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n', 'framing'],
    ['chunks with 103', 'HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n', 'framing'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok', 'framing'],
  ])('with %s is invalid', (_, text, layer) => {
    expect(response(text)).toMatchObject({ kind: 'invalid', layer })
  })
})
