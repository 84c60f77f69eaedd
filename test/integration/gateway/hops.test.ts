/** Requirements of RFC 9110 for proxies: Via, Max-Forwards and OPTIONS *. */
import { describe, expect, it } from 'vitest'
import { ask, type Echo, echoUpstream, gatewayTo, raw, sent } from '../../fixtures/test-gateway.js'

const gateway = async () => gatewayTo(await echoUpstream())

async function echoed(path: string, options: Parameters<typeof ask>[1]): Promise<Echo> {
  const { url } = await gateway()
  return JSON.parse((await ask(`${url}${path}`, options)).body) as Echo
}

describe('Via', () => {
  it('appends the gateway after earlier proxies', async () => {
    expect(sent(await echoed('/', {}), 'Via')).toEqual(['1.1 fluxgate'])
    const headers = { Via: ['1.0 first', '2 second (comment)'] }
    expect(sent(await echoed('/', { headers }), 'Via')).toEqual(['1.0 first, 2 second (comment), 1.1 fluxgate'])
  })

  it('has the HTTP version of the client', async () => {
    const { port } = await gateway()
    expect(await raw(port, 'GET / HTTP/1.0\r\n\r\n')).toContain('"Via","1.0 fluxgate"')
  })
})

describe('Max-Forwards', () => {
  it.each([
    ['OPTIONS', '5', ['4']],
    ['OPTIONS', '1', ['0']],
    ['TRACE', '7', ['6']],
    ['OPTIONS', 'many', ['many']],
    ['GET', '5', ['5']],
    ['GET', '0', ['0']],
  ])('of %s %s reaches the upstream as %j', async (method, value, expected) => {
    expect(sent(await echoed('/x', { method, headers: { 'Max-Forwards': value } }), 'Max-Forwards')).toEqual(expected)
  })

  it('of 0 makes the gateway answer OPTIONS with the allowed methods', async () => {
    const { url } = await gateway()
    const answer = await ask(`${url}/x`, { method: 'OPTIONS', headers: { 'Max-Forwards': '0' } })
    expect(answer).toMatchObject({ status: 200, body: '', headers: { 'content-length': '0' } })
    expect(answer.headers.allow).toContain('GET')
  })

  it('of 0 makes the gateway answer TRACE with the request, without secrets', async () => {
    const { url } = await gateway()
    const headers = {
      'Max-Forwards': '0',
      Via: '1.1 before',
      Cookie: 'secret',
      Authorization: 'secret',
      'X-API-Key': 'secret',
    }
    const answer = await ask(`${url}/x?y`, { method: 'TRACE', headers })
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'message/http' } })
    expect(answer.body).toMatch(/^TRACE \/x\?y HTTP\/1\.1\r\n/)
    expect(answer.body).toContain('Via: 1.1 before\r\n')
    expect(answer.body).not.toContain('secret')
  })
})

describe('OPTIONS for the gateway itself', () => {
  it.each(['*', 'http://gateway.example.org'])('returns the allowed methods: %s', async (target) => {
    const { port } = await gateway()
    const received = await raw(port, `OPTIONS ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(received).toMatch(/\r\nAllow: GET, HEAD, POST, /)
    expect(received).not.toContain('"method"')
  })

  it('requires a Host header like any request', async () => {
    const { port } = await gateway()
    expect(await raw(port, 'OPTIONS * HTTP/1.1\r\nConnection: close\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  })
})
