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

  describe('durations', () => {
    const durationOf = (line: string, fields = {}): unknown => detectFormat([line], fields)?.parse(line)?.duration

    it('are read from the fields of the gateway, pino and nginx', () => {
      expect(durationOf('{"time":"2026-01-31T12:00:00Z","durationMs":12.5}')).toBe(12_500)
      expect(durationOf('{"time":1769860800000,"responseTime":7}')).toBe(7_000)
      expect(durationOf('{"time_iso8601":"2026-01-31T12:00:00Z","request_time":"0.042"}')).toBe(42_000)
      expect(durationOf('{"time":1769860800000,"duration":5}')).toBeUndefined()
      expect(durationOf('{"time":1769860800000,"durationMs":"-"}')).toBeUndefined()
      expect(durationOf('{"time":1769860800000,"durationMs":-1}')).toBeUndefined()
    })

    it('do not take the place of a time that is recorded as requestTime', () => {
      const line = '{"requestTime":"31/Jan/2026:12:00:00 +0000"}'
      expect(detectFormat([line])?.parse(line)).toMatchObject({ at: 1_769_860_800_000_000 })
      expect(durationOf(line)).toBeUndefined()
    })

    it('are read from a named field with a unit, in JSON lines and CSV', () => {
      const caddy = '{"ts":1769860800.5,"duration":0.25}'
      expect(durationOf(caddy, { durationField: { name: 'duration', unit: 's' } })).toBe(250_000)
      const traefik = '{"time":"2026-01-31T12:00:00Z","Duration":1500000}'
      expect(durationOf(traefik, { durationField: { name: 'Duration', unit: 'ns' } })).toBe(1_500)
      const csv = detectFormat(['time,took', '1000,3'], { durationField: { name: 'took', unit: 'ms' } })
      expect(csv?.parse('1000,3')?.duration).toBe(3_000)
    })
  })

  describe('costs', () => {
    it('are read from named fields, including nested ones, and rounded up', () => {
      const costFields = { tokens: 'usage.total_tokens', seconds: 'took' }
      const format = detectFormat(['{"time":1}'], { costFields })
      const parse = (line: string) => format?.parse(line)?.costs
      expect(parse('{"time":1,"took":1.2,"usage":{"total_tokens":1200}}')).toEqual({ tokens: 1_200, seconds: 2 })
      expect(parse('{"time":1,"usage.total_tokens":"7"}')).toEqual({ tokens: 7 })
      expect(parse('{"time":1,"took":-1,"usage":null}')).toEqual({})
    })

    it('are read from the size of the response in an access log', () => {
      const costFields = { bytes: 'bytes' }
      expect(detectFormat([combined], { costFields })?.parse(combined)?.costs).toEqual({ bytes: 512 })
      expect(detectFormat([common], { costFields })?.parse(common)?.costs).toEqual({})
      expect(detectFormat([combined])?.parse(combined)?.costs).toBeUndefined()
    })
  })
})
