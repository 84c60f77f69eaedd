/** Client identity: no client can evade its limit by what it sends. */
import { describe, expect, it } from 'vitest'
import type { RateLimitOptions } from '../../../src/middleware/limits/create-guard.js'
import { type Adapter, adapters } from './adapters.js'
import { gateOf, limitsIn, startBed } from './test-app.js'

const [express] = adapters as [Adapter]
const loopback = ['127.0.0.0/8']

/** The key of a request, as its decision reports it. */
async function keyOf(options: Partial<RateLimitOptions>, headers: Record<string, string | string[]>): Promise<string> {
  const gate = await gateOf({ bands: [{ capacity: 1_000, window: '1m' }] })
  let key: string | null = null
  gate.on('decision', ({ decision }) => {
    key = decision.key
  })
  const bed = await startBed(express, [{ gate, ...options } as RateLimitOptions])
  expect((await bed.ask({ headers })).status).toBe(200)
  return String(key)
}

describe('the client IP', () => {
  it.each(adapters)(
    'is the socket address, whatever an untrusted client sends in X-Forwarded-For: $name',
    async (adapter) => {
      const bed = await startBed(adapter, [{ capacity: 1_000, window: '1d', algorithm: 'FIXED_WINDOW' }])
      const answers = []
      for (let i = 0; i < 20; i++)
        answers.push(await bed.ask({ headers: { 'X-Forwarded-For': `203.0.113.${i}`, Forwarded: `for=192.0.2.${i}` } }))
      expect(answers.map(({ headers }) => headers['x-ratelimit-remaining'])).toEqual(
        answers.map((_, index) => String(999 - index)),
      )
    },
  )

  it('maps a thousand spoofed addresses to one bucket', async () => {
    const gate = await gateOf({ algorithm: 'FIXED_WINDOW', bands: [{ capacity: 1_000, window: '1d' }] })
    const keys = new Set<string | null>()
    gate.on('decision', ({ decision }) => keys.add(decision.key))
    const bed = await startBed(express, [{ gate, trustedProxies: ['10.0.0.0/8'] }])
    for (let i = 0; i < 1_000; i += 50)
      await Promise.all(
        Array.from({ length: 50 }, (_, j) =>
          bed.ask({ headers: { 'X-Forwarded-For': `203.0.${(i + j) >> 8}.${(i + j) & 255}` } }),
        ),
      )
    expect([...keys]).toEqual(['127.0.0.1'])
    expect((await bed.ask()).status).toBe(429)
  })

  it.each([
    ['one proxy', '203.0.113.7', '203.0.113.7'],
    ['what the client wrote before it', '1.1.1.1, 203.0.113.7', '203.0.113.7'],
    ['several trusted hops', '1.1.1.1, 203.0.113.7, 10.1.1.1, 10.2.2.2', '203.0.113.7'],
    ['a port', '203.0.113.7:51234', '203.0.113.7'],
    ['IPv6', '2001:db8:1:2::7', '2001:db8:1::/56'],
    ['IPv6 in brackets', '[2001:db8:1:2::7]', '2001:db8:1::/56'],
    ['IPv6 in brackets with a port', '[2001:db8:1:2::7]:443', '2001:db8:1::/56'],
    ['IPv4 in IPv6', '::ffff:203.0.113.7', '203.0.113.7'],
    ['garbage that the client wrote', 'garbage, 203.0.113.7', '203.0.113.7'],
    ['empty entries', ' , 203.0.113.7 , ', '203.0.113.7'],
    ['garbage from the proxy', '203.0.113.7, unknown', '127.0.0.1'],
    ['garbage behind a trusted hop', '203.0.113.7, what?, 10.1.1.1', '10.1.1.1'],
    ['trusted hops alone', '10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['an address too large', '203.0.113.256', '127.0.0.1'],
    ['nothing', '', '127.0.0.1'],
  ])('is taken from a trusted proxy: %s', async (_, forwarded, key) => {
    const options = { trustedProxies: [...loopback, '10.0.0.0/8'] }
    expect(await keyOf(options, { 'X-Forwarded-For': forwarded })).toBe(key)
  })

  it('is parsed from repeated headers as from one list', async () => {
    const headers = { 'X-Forwarded-For': ['1.1.1.1', '203.0.113.7, 10.1.1.1'] }
    expect(await keyOf({ trustedProxies: [...loopback, '10.0.0.0/8'] }, headers)).toBe('203.0.113.7')
  })

  it.each([
    ['for=203.0.113.7', '203.0.113.7'],
    ['For="203.0.113.7:4711";proto=https', '203.0.113.7'],
    ['proto=http;for="[2001:db8:1:2::7]:4711";by=10.0.0.1', '2001:db8:1::/56'],
    ['for=1.1.1.1, for=203.0.113.7, for=10.1.1.1', '203.0.113.7'],
    ['for="1.1.1.1, for=203.0.113.7', '203.0.113.7'],
    ['for=203.0.113.7, for=_hidden', '127.0.0.1'],
    ['for=203.0.113.7, proto=https', '127.0.0.1'],
    ['for=unknown', '127.0.0.1'],
    ['for=1.1.1.1, for=203.0.113.7;host="a, for=9.9.9.9;x=y"', '203.0.113.7'],
    ['for=1.1.1.1, host="a\\", for=9.9.9.9";for="203.0.113.7:_hidden"', '203.0.113.7'],
    ['for=1.1.1.1;host=", for=203.0.113.7;host="a"', '203.0.113.7'],
    ['for=1.1.1.1;for=203.0.113.7', '127.0.0.1'],
    ['for=203.0.113.7 x', '127.0.0.1'],
    ['for=[2001:db8:1:2::7]', '2001:db8:1::/56'],
  ])('is parsed from Forwarded: %s', async (forwarded, key) => {
    const options = { trustedProxies: [...loopback, '10.0.0.0/8'], clientIpHeader: 'Forwarded' }
    expect(await keyOf(options, { Forwarded: forwarded, 'X-Forwarded-For': '9.9.9.9' })).toBe(key)
  })

  it.each([
    ['loopback', '203.0.113.7, 127.0.0.9', '203.0.113.7'],
    [['loopback', 'uniquelocal'], '203.0.113.7, 10.1.1.1, 172.16.0.1, 192.168.0.1, fd00::1', '203.0.113.7'],
    ['loopback, linklocal', '203.0.113.7, 169.254.1.1, fe80::1', '203.0.113.7'],
    ['uniquelocal', '203.0.113.7', '127.0.0.1'],
    [0, '203.0.113.7', '127.0.0.1'],
    [1, '1.1.1.1, 203.0.113.7', '203.0.113.7'],
    [2, '1.1.1.1, 203.0.113.7, 198.51.100.1', '203.0.113.7'],
    [3, '203.0.113.7, 198.51.100.1', '203.0.113.7'],
    [3, '', '127.0.0.1'],
    [2, '203.0.113.7, unknown', '127.0.0.1'],
  ])('is determined with trustedProxies: %j', async (trustedProxies, forwarded, key) => {
    expect(await keyOf({ trustedProxies }, { 'X-Forwarded-For': forwarded })).toBe(key)
  })

  it('can be taken from a dedicated header of the proxy', async () => {
    const options = { trustedProxies: loopback, clientIpHeader: 'CF-Connecting-IP' }
    expect(await keyOf(options, { 'CF-Connecting-IP': '203.0.113.7', 'X-Forwarded-For': '9.9.9.9' })).toBe(
      '203.0.113.7',
    )
  })

  it('counts an IPv6 network as one client, and another network separately', async () => {
    const bed = await startBed(express, [
      { capacity: 256, window: '1d', trustedProxies: loopback, algorithm: 'FIXED_WINDOW' },
    ])
    const from = (ip: string) => bed.ask({ headers: { 'X-Forwarded-For': ip } })
    const network = Array.from({ length: 256 }, (_, i) => from(`2001:db8:0:1${i.toString(16).padStart(2, '0')}::${i}`))
    expect((await Promise.all(network)).every(({ status }) => status === 200)).toBe(true)
    expect((await from('2001:db8:0:1ff:ffff::')).status).toBe(429)
    expect((await from('2001:db8:0:200::')).status).toBe(200)
  })

  it('counts IPv6 by the configured prefix length', async () => {
    const bed = await startBed(express, [{ capacity: 1, window: '1d', trustedProxies: loopback, ipv6Prefix: 64 }])
    const from = (ip: string) => bed.ask({ headers: { 'X-Forwarded-For': ip } })
    expect((await from('2001:db8::1')).status).toBe(200)
    expect((await from('2001:db8:0:1::1')).status).toBe(200)
    expect((await from('2001:db8::2')).status).toBe(429)
  })

  it('is missing for an unknown client: the rule decides', async () => {
    const fetch = adapters.find(({ name }) => name === 'fetch') as Adapter
    const bed = await startBed(fetch, [{ capacity: 1, window: '1m', onMissingKey: 'DENY', customize: withoutAddress }])
    expect((await bed.ask()).status).toBe(429)
  })

  it.each([['10.0.0.0/40'], ['localhost'], [''], 'private', -1, 1.5, 101, '101'])(
    'rejects trustedProxies: %j',
    async (trustedProxies) => {
      await expect(startBed(express, [{ capacity: 1, window: '1m', trustedProxies }])).rejects.toMatchObject({
        code: 'FLUXGATE_CONFIG_INVALID',
      })
    },
  )
})

const withoutAddress = (context: object) => ({ ...context, clientIp: undefined })

describe.each(adapters)('users of $name', (adapter) => {
  it('have 100 requests per hour each, and anonymous requests share one bucket', async () => {
    const limit = { id: 'api', path: '/api/**', limitScope: 'USER_ID', capacity: 100, window: '1h' } as const
    const bed = await startBed(adapter, [{ ...limit, algorithm: 'FIXED_WINDOW', userIdHeader: 'X-User-Id' }])
    const asUser = (user?: string) =>
      bed.ask({ path: '/api/orders?page=2', headers: user === undefined ? {} : { 'X-User-Id': user } })
    const first = await Promise.all(Array.from({ length: 100 }, () => asUser('user123')))
    expect(first.every(({ status }) => status === 200)).toBe(true)
    const { status, headers } = await asUser('user123')
    expect(status).toBe(429)
    expect(Object.keys(limitsIn(headers)).sort()).toEqual([
      'ratelimit',
      'ratelimit-policy',
      'retry-after',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
    ])
    expect(headers).toMatchObject({ 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '0' })
    expect((await asUser('user124')).headers['x-ratelimit-remaining']).toBe('99')
    expect([await asUser(), await asUser(' ')].map((answer) => answer.headers['x-ratelimit-remaining'])).toEqual([
      '99',
      '98',
    ])
    expect(limitsIn((await bed.ask({ path: '/elsewhere', headers: { 'X-User-Id': 'user123' } })).headers)).toEqual({})
  })
})
