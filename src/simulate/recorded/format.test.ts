import { describe, expect, it } from 'vitest'
import { detectFormat } from './format.js'

const combined =
  '203.0.113.7 - ann [31/Jan/2026:12:00:00 +0000] "POST /login?x=1 HTTP/1.1" 200 512 "https://a.example/" "curl/8 \\"x\\""'
const common = '2001:db8::1 - - [31/Jan/2026:12:00:01 +0000] "GET / HTTP/1.0" 404 -'

describe('detectFormat', () => {
  it('parses client, user, method and path of an access log', () => {
    const format = detectFormat([combined, common])
    expect(format?.name).toBe('access log')
    expect(format?.parse(combined)).toEqual({
      at: 1_769_860_800_000_000,
      context: {
        clientIp: '203.0.113.7',
        userId: 'ann',
        method: 'POST',
        path: '/login?x=1',
        headers: { referer: 'https://a.example/', 'user-agent': 'curl/8 \\"x\\"' },
      },
    })
    expect(format?.parse(common)?.context).toMatchObject({ clientIp: '2001:db8::1', userId: undefined, path: '/' })
  })

  it('parses virtual hosts, user names with spaces and malformed requests', () => {
    const format = detectFormat([combined])
    expect(format?.parse(`example.com:443 ${combined}`)?.context?.clientIp).toBe('203.0.113.7')
    expect(format?.parse(combined.replace('ann', 'ann lee'))?.context?.userId).toBe('ann lee')
    expect(format?.parse('10.0.0.1 - - [31/Jan/2026:12:00:00 +0000] "-" 408 0')?.context).toMatchObject({
      clientIp: '10.0.0.1',
      method: undefined,
      path: undefined,
    })
  })

  it('parses JSON lines with all usual field names', () => {
    const line =
      '{"@timestamp":"2026-01-31T12:00:00Z","remote_addr":"10.0.0.1","request_method":"GET","uri":"/a","user_id":7}'
    const format = detectFormat([line])
    expect(format?.name).toBe('JSON lines')
    expect(format?.parse(line)).toEqual({
      at: 1_769_860_800_000_000,
      context: { clientIp: '10.0.0.1', userId: '7', apiKey: undefined, method: 'GET', path: '/a' },
    })
    expect(format?.parse('{"time":')).toBeUndefined()
    expect(format?.parse('{"__proto__":{"time":1}}')).toBeUndefined()
  })

  it('parses CSV with a header', () => {
    const lines = ['Path,Time,Client IP', '"/a,b",2026-01-31T12:00:00Z,10.0.0.1']
    const format = detectFormat(lines)
    expect(format?.name).toBe('CSV')
    expect(format?.parse(lines[1] as string)).toMatchObject({
      at: 1_769_860_800_000_000,
      context: { clientIp: '10.0.0.1', path: '/a,b' },
    })
  })

  it('finds the time column of CSV without a header and with other separators', () => {
    expect(detectFormat(['a;2026-01-31T12:00:00Z;b', 'c;2026-01-31T12:00:01Z;d'])?.parse('x;1769860800000;y')?.at).toBe(
      1_769_860_800_000_000,
    )
    expect(detectFormat(['x\t1769860800000', 'y\t1769860800001'])?.name).toBe('CSV')
  })

  it('parses bare timestamps and follows the majority of lines', () => {
    expect(detectFormat(['0', '100', '200'])?.name).toBe('timestamps')
    expect(detectFormat(['0', 'oops', '200'])?.name).toBe('timestamps')
    expect(detectFormat(['oops', 'alas', '200'])).toBeUndefined()
    expect(detectFormat(['<html>'])).toBeUndefined()
    expect(detectFormat([])).toBeUndefined()
  })
})
