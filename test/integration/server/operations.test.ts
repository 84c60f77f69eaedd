import { describe, expect, it } from 'vitest'
import { eventually } from '../../fixtures/eventually.js'
import { raw } from '../../fixtures/test-gateway.js'
import { serverWith, wholeServer } from '../../fixtures/test-server.js'

const check = '/api/ratelimit/check'
const bucket = '/api/buckets?ruleSetId=api&ruleId=login'

describe('/api/buckets', () => {
  it('shows the remaining permits of one key, and resets them', async () => {
    const { ask } = await serverWith()
    const login = { clientIp: '203.0.113.7', path: '/login' }
    await ask('POST', check, login)
    const before = await ask('GET', `${bucket}&key=203.0.113.7`)
    expect(before.body).toEqual({
      ruleSetId: 'api',
      ruleId: 'login',
      key: '203.0.113.7',
      bands: [{ label: 'hour', limit: 2, remaining: 1, resetAt: 1_700_001_800_000, windowMs: 3_600_000 }],
    })
    expect((await ask('GET', `${bucket}&key=203.0.113.8`)).body.bands).toMatchObject([{ remaining: 2 }])
    expect((await ask('DELETE', `${bucket}&key=203.0.113.7`)).status).toBe(204)
    expect((await ask('GET', `${bucket}&key=203.0.113.7`)).body.bands).toMatchObject([{ remaining: 2 }])
  })

  it('without a key resets all keys of the rule, and of no other', async () => {
    const { ask } = await serverWith()
    for (const clientIp of ['203.0.113.7', '203.0.113.8']) await ask('POST', check, { clientIp, path: '/login' })
    await ask('POST', check, { userId: 'ann', path: '/users/7' })
    expect((await ask('DELETE', bucket)).status).toBe(204)
    for (const key of ['203.0.113.7', '203.0.113.8'])
      expect((await ask('GET', `${bucket}&key=${key}`)).body.bands).toMatchObject([{ remaining: 2 }])
    const users = await ask('GET', '/api/buckets?ruleSetId=api&ruleId=users&key=ann')
    expect(users.body.bands).toMatchObject([{ remaining: 9 }])
  })

  it.each([
    ['GET', bucket, 400],
    ['GET', '/api/buckets?key=x', 400],
    ['GET', '/api/buckets?ruleSetId=api&ruleId=nobody&key=x', 404],
    ['GET', '/api/buckets?ruleSetId=nobody&ruleId=login&key=x', 404],
    ['GET', `${bucket}&key=`, 400],
    ['DELETE', '/api/buckets', 400],
    ['DELETE', '/api/buckets?ruleSetId=api', 400],
    ['DELETE', `${bucket}&kee=203.0.113.7`, 400],
    ['DELETE', '/api/buckets?ruleSetId=api&ruleId=nobody', 404],
  ])('%s %s is %i', async (method, path, status) => {
    const { ask } = await serverWith()
    expect((await ask(method, path)).status).toBe(status)
  })
})

describe('statistics', () => {
  it('report decisions, rejected clients and the latest decisions, with digests of keys', async () => {
    const { ask } = await wholeServer()
    const request = { ruleSetId: 'shop', clientIp: '203.0.113.7', path: '/shop/cart', method: 'get' }
    for (let i = 0; i < 7; i++) await ask('POST', check, request)
    const { body } = await ask('GET', '/api/stats')
    expect(body.totals).toMatchObject({ allowed: 5, denied: 2, degraded: 0 })
    expect(body.rules[0]).toMatchObject({ ruleSetId: 'shop', ruleId: 'per-address', allowed: 5, denied: 2 })
    const key = expect.stringMatching(/^sha256:[0-9a-f]{16}$/)
    const top = await ask('GET', '/api/stats/top?by=denied')
    expect(top.body.keys).toMatchObject([{ ruleId: 'per-address', key, denied: 2 }])
    const found = await ask('GET', '/api/keys?prefix=203.0.113.')
    expect(found.body.keys).toMatchObject([{ key, requests: 7 }])
    expect((await ask('GET', '/api/keys?prefix=198.')).body.keys).toEqual([])
    expect((await ask('GET', '/api/keys?sample=true&limit=10')).body.keys).toEqual(found.body.keys)
    const recent = await ask('GET', '/api/decisions/recent?limit=1')
    expect(recent.body.decisions).toMatchObject([{ allowed: false, key, method: 'GET', path: '/shop/cart' }])
  })

  it('show keys if configured', async () => {
    const { ask } = await wholeServer({ revealKeys: true })
    await ask('POST', check, { ruleSetId: 'shop', clientIp: '203.0.113.7', path: '/shop' })
    expect((await ask('GET', '/api/stats/top?by=requests')).body.keys).toMatchObject([{ key: '203.0.113.7' }])
  })

  it.each(['/api/stats', '/api/stats/top', '/api/keys', '/api/decisions/recent', '/metrics'])(
    'that a server does not record are 501 at %s',
    async (path) => {
      const { ask } = await serverWith()
      expect(await ask('GET', path)).toMatchObject({ status: 501, body: { code: 'FLUXGATE_NOT_SUPPORTED' } })
    },
  )

  it.each([
    ['/api/stats/top?by=colour', 'by: must be one of denied, requests; received "colour"'],
    ['/api/stats/top?limit=0', 'limit: must be an integer from 1 to 1000; received 0'],
    ['/api/keys?limit=x', 'limit: must be an integer from 1 to 1000; received "x"'],
    ['/api/decisions/recent?limit=1e3', 'limit: must be an integer from 1 to 1000; received "1e3"'],
  ])('%s is 400 with the allowed values', async (path, detail) => {
    const { ask } = await wholeServer()
    expect(await ask('GET', path)).toMatchObject({ status: 400, body: { detail } })
  })
})

describe('/console', () => {
  it('is a page that may load scripts and styles of its own server only', async () => {
    const { ask } = await wholeServer()
    const { status, headers, text } = await ask('GET', '/console')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(text).not.toMatch(/<script>|<style|\bstyle=|\bon\w+=/i)
    const urls = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = '']) => url)
    expect(urls.length).toBeGreaterThan(2)
    for (const url of urls) {
      expect(url).toMatch(/^\/console\//)
      expect((await ask('GET', url)).status).toBe(200)
    }
  })

  it('has compressed assets that browsers cache, and no files outside of its folder', async () => {
    const { ask } = await wholeServer()
    const [, script = ''] = /src="([^"]+)"/.exec((await ask('GET', '/console')).text) ?? []
    const plain = await ask('GET', script, undefined, { 'Accept-Encoding': 'identity' })
    const { headers, text } = await ask('GET', script, undefined, { 'Accept-Encoding': 'gzip' })
    expect(headers.get('content-encoding')).toBe('gzip')
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(text).toBe(plain.text)
    for (const path of ['/console/../package.json', '/console/%2e%2e/package.json', '/console/..%2fbundle/index.js'])
      expect((await ask('GET', path)).status, path).toBe(404)
  })

  it.each(['/', '/console/'])('is the redirect target of %s', async (path) => {
    const { port } = await serverWith()
    const replies = await raw(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    expect(replies).toMatch(/^HTTP\/1\.1 302 /)
    expect(replies).toContain('Location: /console')
  })
})

describe('secrets', () => {
  const adminToken = 'planted-admin-token'
  const checkToken = 'planted-check-token'
  const apiKey = 'planted-api-key'
  const userId = 'planted-user'
  const planted = /planted/

  it('are in no response, event or log line', async () => {
    const { url, ask, lines } = await wholeServer({ adminToken, checkToken })
    const admin = { Authorization: `Bearer ${adminToken}` }
    const rules = '/api/rule-sets/shop/rules'
    await ask('PUT', `${rules}/keyed`, { limitScope: 'API_KEY', bands: [{ capacity: 1, window: '1h' }] }, admin)
    await ask('PUT', `${rules}/user`, { limitScope: 'USER_ID', bands: [{ capacity: 1, window: '1h' }] }, admin)
    const leaving = new AbortController()
    const events = await fetch(`${url}/api/events`, { headers: admin, signal: leaving.signal })
    const reported: string[] = []
    const reading = (async () => {
      for await (const chunk of events.body as unknown as AsyncIterable<Uint8Array>)
        reported.push(Buffer.from(chunk).toString())
    })().catch(() => {})
    for (let i = 0; i < 3; i++)
      await ask('POST', check, { ruleSetId: 'shop', apiKey, userId }, { Authorization: `Bearer ${checkToken}` })
    await ask('DELETE', `/api/buckets?ruleSetId=shop&ruleId=keyed&key=${apiKey}`, undefined, admin)
    await eventually('a decision', () => reported.join('').includes('event: decision'))
    const paths = [
      '/api/stats',
      '/api/stats/top',
      '/api/keys?prefix=planted',
      '/api/decisions/recent',
      '/info',
      '/metrics',
    ]
    const others = [
      '/console',
      '/openapi.json',
      '/health/ready',
      '/api/rule-sets',
      '/api/rule-sets/shop/history',
      '/nowhere',
    ]
    for (const path of [...paths, ...others])
      expect((await ask('GET', path, undefined, admin)).text, path).not.toMatch(planted)
    for (const wrong of [`Bearer ${adminToken}x`, `Basic ${adminToken}`, adminToken])
      expect((await ask('GET', '/info', undefined, { Authorization: wrong })).text).not.toMatch(planted)
    leaving.abort()
    await reading
    expect(reported.join('')).not.toMatch(planted)
    expect(lines.length).toBeGreaterThan(2)
    expect(JSON.stringify(lines)).not.toMatch(planted)
    expect(JSON.stringify(lines)).toMatch(/"action":"RESET".*"key":"sha256:[0-9a-f]{16}","by":"admin@127\.0\.0\.1"/)
  })
})

describe('internal errors', () => {
  it('are 500 without details, which are in the log', async () => {
    const { ask, gate, lines } = await wholeServer()
    gate.health = () => Promise.reject(new Error('at 10.1.2.3 with password hunter2'))
    const { status, body } = await ask('GET', '/health/ready', undefined, { 'X-Trace-Id': 'trace-7' })
    expect(status).toBe(500)
    expect(body).toEqual({
      type: 'about:blank',
      title: 'Internal Server Error',
      status: 500,
      detail: 'Internal server error. The server log has the details.',
      code: 'FLUXGATE_INTERNAL',
    })
    expect(lines.at(-1)).toMatchObject({
      message: 'request failed',
      status: 500,
      route: '/health/ready',
      traceId: 'trace-7',
    })
  })

  it('of a closed gate are 503', async () => {
    const { ask, gate } = await serverWith()
    await gate.close()
    expect(await ask('POST', check, {})).toMatchObject({ status: 503, body: { code: 'FLUXGATE_CLOSED' } })
  })
})
