import { describe, expect, it } from 'vitest'
import { serverWith, type TestServer, wholeServer } from '../../fixtures/test-server.js'

const rule = '/api/rule-sets/shop/rules/per-address'
const overrides = `${rule}/overrides`
const band = { label: 'minute', capacity: 50, window: '1m' }

const decisionOf = async ({ ask }: Pick<TestServer, 'ask'>, clientIp: string) =>
  (await ask('POST', '/api/ratelimit/check', { ruleSetId: 'shop', clientIp, path: '/shop/cart' })).body

describe('overrides over REST', () => {
  it('apply to the next decision: no limit, no permits, or other bands', async () => {
    const server = await wholeServer()
    expect(await decisionOf(server, '203.0.113.7')).toMatchObject({ allowed: true, limit: 5 })
    const allowed = await server.ask('POST', overrides, { key: '203.0.113.7', action: 'ALLOW', note: 'a friend' })
    expect(allowed).toMatchObject({ status: 201, body: { key: '203.0.113.7', action: 'ALLOW', note: 'a friend' } })
    expect(allowed.headers.get('location')).toBe(`${overrides}/203.0.113.7`)
    expect(await decisionOf(server, '203.0.113.7')).toMatchObject({ allowed: true, reason: 'ALLOW_LISTED' })
    const denied = await server.ask('PUT', `${overrides}/203.0.113.7`, { action: 'DENY' })
    expect(denied).toMatchObject({ status: 200, body: { key: '203.0.113.7', action: 'DENY' } })
    expect(await decisionOf(server, '203.0.113.7')).toMatchObject({ allowed: false, reason: 'DENY_LISTED' })
    await server.ask('PUT', `${overrides}/203.0.113.7`, { action: 'LIMIT', bands: [band] })
    expect(await decisionOf(server, '203.0.113.7')).toMatchObject({ allowed: true, limit: 50 })
    expect((await server.ask('DELETE', `${overrides}/203.0.113.7`)).status).toBe(204)
    expect(await decisionOf(server, '203.0.113.7')).toMatchObject({ limit: 5 })
  })

  it('can set the starting balance of a key', async () => {
    const server = await wholeServer()
    const put = await server.ask('PUT', `${overrides}/203.0.113.7`, { action: 'LIMIT', balance: 2 })
    expect(put).toMatchObject({ status: 201, body: { key: '203.0.113.7', action: 'LIMIT', balance: 2 } })
    // The store's clock is monotonic, so it may differ from a wall clock that is being adjusted.
    expect(Math.abs(Date.parse(put.body.balanceAt) - Date.now())).toBeLessThan(60_000)
    expect(await decisionOf(server, '203.0.113.7')).toMatchObject({ allowed: true, limit: 5, remaining: 1 })
    // Repeating the same override changes nothing.
    expect((await server.ask('PUT', `${overrides}/203.0.113.7`, put.body)).status).toBe(200)
    expect(await decisionOf(server, '203.0.113.7')).toMatchObject({ allowed: true, remaining: 0 })
    expect(await server.ask('PUT', `${overrides}/203.0.113.7`, { action: 'DENY', balance: 2 })).toMatchObject({
      status: 400,
      body: { code: 'FLUXGATE_OVERRIDE_INVALID' },
    })
  })

  it('of ranges can be named verbatim or escaped', async () => {
    const server = await wholeServer()
    expect((await server.ask('PUT', `${overrides}/10.0.0.0/8`, { action: 'DENY' })).status).toBe(201)
    for (const path of [`${overrides}/10.0.0.0/8`, `${overrides}/10.0.0.0%2F8`])
      expect((await server.ask('GET', path)).body).toMatchObject({ key: '10.0.0.0/8', action: 'DENY' })
    expect(await decisionOf(server, '10.1.2.3')).toMatchObject({ allowed: false, reason: 'DENY_LISTED' })
    expect((await server.ask('DELETE', `${overrides}/10.0.0.0/8`)).status).toBe(204)
    expect((await server.ask('GET', `${overrides}/10.0.0.0/8`)).status).toBe(404)
    expect((await server.ask('DELETE', `${overrides}/10.0.0.0/8`)).status).toBe(404)
  })

  it('are rejected for a malformed address, which no request can have', async () => {
    const { ask } = await wholeServer()
    expect(await ask('PUT', `${overrides}/203.0.113.300`, { action: 'DENY' })).toMatchObject({
      status: 400,
      body: {
        code: 'FLUXGATE_OVERRIDE_INVALID',
        errors: [
          { path: 'key', message: expect.stringMatching(/^must be an address .*; received "203\.0\.113\.300"$/) },
        ],
      },
    })
  })

  it('are found by key, in any notation, without an error if there is none', async () => {
    const { ask } = await wholeServer()
    for (const key of ['203.0.113.7', '203.0.113.70', '10.0.0.0/8'])
      await ask('POST', overrides, { key, action: 'DENY' })
    const keysOf = async (query: string) => {
      const { status, body } = await ask('GET', `${overrides}?${query}`)
      expect([status, body.cursor]).toEqual([200, null])
      return body.overrides.map(({ key }: { key: string }) => key)
    }
    expect(await keysOf('key=203.0.113.7')).toEqual(['203.0.113.7'])
    expect(await keysOf('key=::ffff:203.0.113.7&limit=5')).toEqual(['203.0.113.7'])
    expect(await keysOf('key=10.0.0.0%2F8')).toEqual(['10.0.0.0/8'])
    expect(await keysOf('key=203.0.113')).toEqual([])
    expect(await keysOf('key=10.1.2.3')).toEqual([])
    for (const query of ['key=a&prefix=a', 'key=a&cursor=YQ', 'key='])
      expect(await ask('GET', `${overrides}?${query}`)).toMatchObject({
        status: 400,
        body: { code: 'FLUXGATE_REQUEST_INVALID', errors: [{ path: 'key' }] },
      })
  })

  it('are listed by key, in pages, and by key prefix', async () => {
    const { ask } = await wholeServer()
    for (const key of ['198.51.100.2', '198.51.100.1', '203.0.113.7', '198.51.100.3'])
      await ask('POST', overrides, { key, action: 'ALLOW' })
    const keys: string[][] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = `prefix=198.&limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`
      const page = await ask('GET', `${overrides}?${query}`)
      keys.push(page.body.overrides.map(({ key }: { key: string }) => key))
      cursor = page.body.cursor
    }
    expect(keys).toEqual([['198.51.100.1', '198.51.100.2'], ['198.51.100.3']])
  })

  it('are created once, and replaced by PUT', async () => {
    const { ask } = await wholeServer()
    const created = await ask('POST', overrides, { key: '203.0.113.7', action: 'ALLOW' })
    expect(created.status).toBe(201)
    expect(await ask('POST', overrides, { key: '203.0.113.7', action: 'DENY' })).toMatchObject({
      status: 409,
      body: { code: 'FLUXGATE_ALREADY_EXISTS' },
    })
    expect((await ask('GET', `${overrides}/203.0.113.7`)).body.action).toBe('ALLOW')
  })

  it('expire at a time given as a date or in epoch milliseconds', async () => {
    const { ask } = await wholeServer()
    const put = async (expiresAt: unknown) =>
      (await ask('PUT', `${overrides}/203.0.113.7`, { action: 'DENY', expiresAt })).body.expiresAt
    expect(await put(4_000_000_000_123)).toBe('2096-10-02T07:06:40.123Z')
    expect(await put('2096-10-02T09:06:40+02:00')).toBe('2096-10-02T07:06:40.000Z')
  })

  it.each([
    [{ key: '203.0.113.7', action: 'MAYBE' }],
    [{ key: '203.0.113.7' }],
    [{ action: 'ALLOW' }],
    [{ key: '203.0.113.7', action: 'LIMIT' }],
    [{ key: '203.0.113.7', action: 'LIMIT', bands: [{ capacity: -1, window: '1s' }] }],
    [{ key: '203.0.113.7', action: 'ALLOW', expiresAt: 'tomorrow' }],
    [{ key: '203.0.113.7', action: 'ALLOW', expiresAt: 4_000_000_000 }],
    [{ key: '203.0.113.7', action: 'ALLOW', expiresAt: 4_000_000_000_000.5 }],
    [{ key: '203.0.113.7', action: 'ALLOW', expiresAt: 1e16 }],
    [{ key: '203.0.113.7', action: 'ALLOW', colour: 'red' }],
    [{ key: '', action: 'ALLOW' }],
    [{ key: '\ud800', action: 'ALLOW' }],
    ['[]'],
    ['7'],
  ])('that are invalid get 400: %j', async (body) => {
    const { ask } = await wholeServer()
    const answer = await ask('POST', overrides, body)
    expect(answer.status).toBe(400)
    expect((await ask('GET', overrides)).body.overrides).toEqual([])
  })

  it('are rejected where they would have no effect, and for an unknown rule', async () => {
    const { ask } = await wholeServer()
    const other = '/api/rule-sets/shop/rules/global/overrides'
    const refused = await ask('POST', other, { key: 'global', action: 'ALLOW' })
    expect(refused).toMatchObject({ status: 400, body: { code: 'FLUXGATE_OVERRIDE_INVALID' } })
    expect(refused.body.detail).toContain('set "overrides": true on the rule first')
    for (const path of ['/api/rule-sets/shop/rules/nobody/overrides', '/api/rule-sets/nobody/rules/a/overrides'])
      for (const [method, body] of [['GET'], ['POST', { key: 'x', action: 'ALLOW' }]] as const)
        expect((await ask(method, path, body)).status).toBe(404)
  })

  it('are logged with a digest of the key', async () => {
    const { ask, lines } = await wholeServer()
    await ask('PUT', `${overrides}/203.0.113.7`, { action: 'ALLOW' })
    expect(lines.at(-1)).toMatchObject({
      action: 'PUT_OVERRIDE',
      ruleSetId: 'shop',
      ruleId: 'per-address',
      key: expect.stringMatching(/^sha256:/),
      by: '127.0.0.1',
    })
  })

  it('that a custom store does not support get 501', async () => {
    const { memoryStore } = await import('../../../src/stores/memory/memory-store.js')
    const memory = memoryStore()
    const store = {
      charge: memory.charge.bind(memory),
      refund: memory.refund.bind(memory),
      reset: memory.reset.bind(memory),
      close: memory.close.bind(memory),
    }
    const { ask } = await serverWith({ gateOptions: { store } })
    const { status, body } = await ask('GET', '/api/rule-sets/api/rules/login/overrides')
    expect(status).toBe(501)
    expect(body.detail).toBe('The bucket store of this server does not support overrides.')
  })
})
