import { describe, expect, it } from 'vitest'
import { serverWith, type TestServer, wholeServer } from '../../fixtures/test-server.js'

const shop = '/api/rule-sets/shop'
const bans = `${shop}/rules/login/bans`
const rule = {
  path: '/login',
  limitScope: 'IP',
  ban: { after: 3, within: '1m', for: '15m', factor: 2, max: '1h' },
  bands: [{ label: 'minute', capacity: 1, window: '1m' }],
}

async function serverWithBans() {
  const server = await wholeServer()
  expect((await server.ask('PUT', `${shop}/rules/login`, rule)).status).toBe(201)
  return server
}

const login = async ({ ask }: Pick<TestServer, 'ask'>, clientIp: string) =>
  (await ask('POST', '/api/ratelimit/check', { ruleSetId: 'shop', clientIp, path: '/login' })).body

describe('bans over REST', () => {
  it('lists, gets and lifts a ban that decisions have started', async () => {
    const server = await serverWithBans()
    for (let i = 0; i < 4; i++) await login(server, '203.0.113.7')
    expect(await login(server, '203.0.113.7')).toMatchObject({ allowed: false, reason: 'BANNED' })
    const { body } = await server.ask('GET', bans)
    expect(body).toMatchObject({ bans: [{ key: '203.0.113.7', count: 1 }], cursor: null })
    const [listed] = body.bans
    expect(listed.retryAfterMs).toBeLessThanOrEqual(900_000)
    const found = await server.ask('GET', `${bans}/203.0.113.7`)
    expect(found).toMatchObject({ status: 200, body: { key: '203.0.113.7', until: listed.until, count: 1 } })
    expect((await server.ask('DELETE', `${bans}/203.0.113.7`)).status).toBe(204)
    expect(await login(server, '203.0.113.7')).toMatchObject({ allowed: false, reason: 'LIMITED' })
    expect(await server.ask('DELETE', `${bans}/203.0.113.7`)).toMatchObject({
      status: 404,
      body: { detail: 'The key is not banned.' },
    })
    expect((await server.ask('GET', bans)).body).toEqual({ bans: [], cursor: null })
  })

  it('sets bans by hand, with a length or an end', async () => {
    const server = await serverWithBans()
    const created = await server.ask('POST', bans, { key: '198.51.100.1', for: '30m' })
    expect(created).toMatchObject({ status: 201, body: { key: '198.51.100.1', retryAfterMs: 1_800_000, count: 0 } })
    expect(created.headers.get('location')).toBe(`${bans}/198.51.100.1`)
    expect(await login(server, '198.51.100.1')).toMatchObject({ reason: 'BANNED' })
    expect((await server.ask('POST', bans, { key: '198.51.100.1' })).status).toBe(409)
    const until = new Date(Date.now() + 600_000).toISOString()
    const replaced = await server.ask('PUT', `${bans}/198.51.100.1`, { until })
    expect(replaced).toMatchObject({ status: 200, body: { until } })
    // An IPv6 client has a prefix of 56 bits, so all of its addresses are one key.
    expect((await server.ask('PUT', `${bans}/2001:db8::7`, {})).body.key).toBe('2001:db8::/56')
    expect(await login(server, '2001:db8::99')).toMatchObject({ reason: 'BANNED' })
  })

  it('pages by cursor and prefix', async () => {
    const { ask } = await serverWithBans()
    for (const key of ['198.51.100.2', '198.51.100.1', '203.0.113.7']) await ask('PUT', `${bans}/${key}`, {})
    const first = (await ask('GET', `${bans}?limit=2`)).body
    expect(first.bans.map(({ key }: { key: string }) => key)).toEqual(['198.51.100.1', '198.51.100.2'])
    const second = (await ask('GET', `${bans}?limit=2&cursor=${first.cursor}`)).body
    expect([second.bans.map(({ key }: { key: string }) => key), second.cursor]).toEqual([['203.0.113.7'], null])
    expect((await ask('GET', `${bans}?prefix=203.`)).body.bans).toHaveLength(1)
  })

  it.each([
    [{ for: '0s' }, 'for'],
    [{ for: '61m' }, 'for'],
    [{ for: 'soon' }, 'for'],
    [{ until: '2020-01-01T00:00:00Z' }, 'until'],
    [{ until: '2099-01-01T00:00:00Z' }, 'until'],
    [{ for: '1m', until: '2099-01-01T00:00:00Z' }, 'until'],
    [{ reason: 'because' }, 'reason'],
  ])('rejects the ban %j with the path of the error', async (body, path) => {
    const { ask } = await serverWithBans()
    expect(await ask('PUT', `${bans}/203.0.113.7`, body)).toMatchObject({
      status: 400,
      body: { code: 'FLUXGATE_BAN_INVALID', errors: [{ path }] },
    })
    expect((await ask('GET', bans)).body.bans).toEqual([])
  })

  it('rejects keys that are ranges or too long, unknown rules and rules without a ban', async () => {
    const { ask } = await serverWithBans()
    expect((await ask('POST', bans, { key: '10.0.0.0/8' })).body.errors[0]).toMatchObject({
      path: 'key',
      message: expect.stringContaining('single address'),
    })
    expect((await ask('POST', bans, { key: 'k'.repeat(1_025) })).body.errors[0].path).toBe('key')
    expect((await ask('POST', bans, {})).body.errors[0].path).toBe('key')
    const without = `${shop}/rules/per-address/bans`
    expect(await ask('PUT', `${without}/203.0.113.7`, {})).toMatchObject({
      status: 400,
      body: { code: 'FLUXGATE_BAN_INVALID', errors: [{ path: 'ruleId' }] },
    })
    expect((await ask('GET', without)).body).toEqual({ bans: [], cursor: null })
    expect((await ask('GET', `${without}/203.0.113.7`)).status).toBe(404)
    for (const [method, path] of [
      ['GET', `${shop}/rules/nothing/bans`],
      ['PUT', `${shop}/rules/nothing/bans/a`],
      ['DELETE', '/api/rule-sets/nothing/rules/login/bans/a'],
    ] as const)
      expect(await ask(method, path, method === 'PUT' ? {} : undefined)).toMatchObject({
        status: 404,
        body: { detail: expect.stringContaining('is not in effect') },
      })
  })

  it('need the admin token', async () => {
    const { url } = await serverWith({ adminToken: 'admin-t0ken', checkToken: 'check-t0ken' })
    for (const [method, path] of [
      ['GET', bans],
      ['PUT', `${bans}/a`],
      ['DELETE', `${bans}/a`],
    ] as const) {
      const headers = { Authorization: 'Bearer check-t0ken', 'Content-Type': 'application/json' }
      const body = method === 'PUT' ? '{}' : undefined
      expect((await fetch(`${url}${path}`, { method, headers, ...(body && { body }) })).status).toBe(401)
    }
  })
})
