import { describe, expect, it } from 'vitest'
import { serverWith } from '../../fixtures/test-server.js'

const check = '/api/ratelimit/check'

describe('POST /api/ratelimit/check', () => {
  it('returns 200 with a decision, whether it allows or rejects', async () => {
    const { ask } = await serverWith()
    const login = { clientIp: '203.0.113.7', path: '/login' }
    const first = await ask('POST', check, login)
    expect(first.status).toBe(200)
    expect(first.body).toEqual({
      allowed: true,
      delayMs: 0,
      reason: 'ALLOWED',
      ruleSetId: 'api',
      ruleId: 'login',
      band: 'hour',
      key: '203.0.113.7',
      limit: 2,
      remaining: 1,
      retryAfterMs: 0,
      resetAt: 1_700_001_800_000,
      decidedAt: 1_700_000_000_000,
      policy: 'REJECT',
      degraded: false,
      bands: [
        {
          ruleId: 'login',
          label: 'hour',
          key: '203.0.113.7',
          limit: 2,
          remaining: 1,
          resetAt: 1_700_001_800_000,
          retryAfterMs: 0,
          allowed: true,
          shadow: false,
          windowMs: 3_600_000,
        },
      ],
    })
    await ask('POST', check, login)
    const third = await ask('POST', check, login)
    expect(third).toMatchObject({ status: 200, body: { allowed: false, reason: 'LIMITED', retryAfterMs: 1_800_000 } })
  })

  it('serves a client that sends only ruleSetId, clientIp, userId, apiKey, endpoint and method, with null for missing values', async () => {
    const { ask } = await serverWith()
    const request = {
      ruleSetId: 'api',
      clientIp: '203.0.113.7',
      userId: null,
      apiKey: null,
      endpoint: '/login',
      method: 'POST',
    }
    expect((await ask('POST', check, request)).body).toMatchObject({ allowed: true, remaining: 1, retryAfterMs: 0 })
    expect((await ask('POST', check, request)).body).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 0 })
    expect((await ask('POST', check, request)).body).toMatchObject({ allowed: false, remaining: 0 })
  })

  it('warns of unknown members, also __proto__, which have no effect', async () => {
    const { ask, gate } = await serverWith()
    const body = '{"clientIp":"203.0.113.7","path":"/login","tenänt":7,"__proto__":{"userId":"root"},"constructor":1}'
    const reply = await ask('POST', check, body)
    expect(reply.body).toMatchObject({ allowed: true, ruleId: 'login', key: '203.0.113.7' })
    expect(reply.headers.get('fluxgate-warning')).toMatch(
      /^The check has the unknown member "ten\\u00e4nt"; allowed: ruleSetId, /,
    )
    expect(gate.warnings.counts).toEqual({ FLUXGATE_ARGUMENT_INVALID: 1 })
  })

  it.each([
    [check, { ip: '203.0.113.7', path: '/login' }],
    [`${check}/batch`, { checks: [{ path: '/login' }, { ip: '203.0.113.7', path: '/login' }] }],
    ['/api/ratelimit/refund', { ip: '203.0.113.7', path: '/login' }],
  ])('suggests the nearest name for an unknown member in a request to %s', async (path, body) => {
    const { ask, gate } = await serverWith()
    const reply = await ask('POST', path, body)
    expect([reply.status, reply.headers.get('fluxgate-warning')]).toEqual([
      200,
      'The check has the unknown member "ip"; did you mean clientIp?',
    ])
    expect(gate.warnings.counts).toEqual({ FLUXGATE_ARGUMENT_INVALID: 1 })
    const known = await ask('POST', check, { clientIp: '203.0.113.7', path: '/login' })
    expect(known.headers.get('fluxgate-warning')).toBeNull()
  })

  it('accepts permits, and charges nothing for a peek', async () => {
    const { ask } = await serverWith()
    const request = { userId: 'ann', path: '/users/7?page=2' }
    expect((await ask('POST', check, { ...request, peek: true })).body.remaining).toBe(9)
    expect((await ask('POST', check, { ...request, permits: 4 })).body.remaining).toBe(6)
    expect((await ask('POST', check, { ...request, permits: 11 })).body).toMatchObject({
      allowed: false,
      reason: 'IMPOSSIBLE',
      retryAfterMs: null,
    })
    expect((await ask('POST', check, request)).body.remaining).toBe(5)
  })

  it('reports that no rule matches, or that the rule set is unknown', async () => {
    const { ask } = await serverWith()
    expect((await ask('POST', check, { path: '/elsewhere' })).body).toMatchObject({ allowed: true, reason: 'NO_RULE' })
    expect((await ask('POST', check, { ruleSetId: 'nobody' })).body).toMatchObject({ reason: 'NO_RULE_SET' })
  })

  it('matches headers and methods in any case, and attributes', async () => {
    const bands = [{ capacity: 5, window: '1h' }]
    const rules = [
      { id: 'ios', when: { 'header.x-app': 'ios', 'attributes.tier': 'free' }, method: 'GET', bands } as const,
    ]
    const { ask } = await serverWith({ ruleSets: { id: 'api', rules } })
    const request = {
      clientIp: '203.0.113.7',
      method: 'get',
      headers: { 'X-App': 'ios' },
      attributes: { tier: 'free' },
    }
    expect((await ask('POST', check, request)).body).toMatchObject({ ruleId: 'ios', remaining: 4 })
    expect((await ask('POST', check, { ...request, headers: { 'X-App': ['ios'] } })).body.remaining).toBe(3)
    expect((await ask('POST', check, { ...request, attributes: { tier: 'paid' } })).body.reason).toBe('NO_RULE')
  })

  it.each([
    [{ permits: -1 }, 'permits'],
    [{ permits: 1.5 }, 'permits'],
    [{ permits: '1' }, 'permits'],
    [{ userId: 7 }, 'userId'],
    [{ peek: 'yes' }, 'peek'],
    [{ headers: { a: 7 } }, 'headers.a'],
    [{ headers: ['a'] }, 'headers'],
    [{ attributes: 'a' }, 'attributes'],
    [{ path: 'x'.repeat(8_193) }, 'path'],
    [[], 'body'],
    ['"text"', 'body'],
    ['null', 'body'],
  ])('rejects %j and names the path', async (body, path) => {
    const { ask } = await serverWith()
    const { status, headers, body: problem } = await ask('POST', check, body)
    expect(status).toBe(400)
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(problem).toMatchObject({ status: 400, code: 'FLUXGATE_REQUEST_INVALID', title: 'Bad Request' })
    expect(problem.errors.map((mistake: { path: string }) => mistake.path)).toEqual([path])
  })
})

describe('POST /api/ratelimit/check/batch', () => {
  it('decides each check separately, in order', async () => {
    const { ask } = await serverWith()
    const login = { clientIp: '203.0.113.7', path: '/login' }
    const user = { userId: 'ann', path: '/users/7' }
    const { status, body } = await ask('POST', `${check}/batch`, { checks: [login, user, login, login, user] })
    expect(status).toBe(200)
    const summary = body.decisions.map(({ ruleId, allowed, remaining }: Record<string, unknown>) => [
      ruleId,
      allowed,
      remaining,
    ])
    expect(summary).toEqual([
      ['login', true, 1],
      ['users', true, 9],
      ['login', true, 0],
      ['login', false, 0],
      ['users', true, 8],
    ])
  })

  it('accepts 0 to 1000 checks, and rejects 1001 without charging any', async () => {
    const { ask } = await serverWith()
    expect((await ask('POST', `${check}/batch`, { checks: [] })).body).toEqual({ decisions: [] })
    const checks = Array.from({ length: 1_000 }, () => ({ path: '/elsewhere' }))
    expect((await ask('POST', `${check}/batch`, { checks })).body.decisions).toHaveLength(1_000)
    const user = { userId: 'ann', path: '/users/7' }
    const tooMany = await ask('POST', `${check}/batch`, { checks: [user, ...checks] })
    expect(tooMany).toMatchObject({ status: 400, body: { errors: [{ path: 'checks' }] } })
    expect((await ask('POST', check, user)).body.remaining).toBe(9)
  })

  it('rejects all of them if one is invalid, and charges none', async () => {
    const { ask } = await serverWith()
    const user = { userId: 'ann', path: '/users/7' }
    const { status, body } = await ask('POST', `${check}/batch`, { checks: [user, { permits: -1 }] })
    expect(status).toBe(400)
    expect(body.errors).toEqual([
      { path: 'checks[1].permits', message: 'must be an integer from 0 to 1000000000, or null; received -1' },
    ])
    expect((await ask('POST', check, user)).body.remaining).toBe(9)
  })
})

describe('POST /api/ratelimit/check/batch with a cost that no rule charges', () => {
  it('names the check, and charges none', async () => {
    const { ask } = await serverWith()
    const user = { userId: 'ann', path: '/users/7' }
    const { status, body } = await ask('POST', `${check}/batch`, { checks: [user, { ...user, costs: { tokns: 1 } }] })
    expect(status).toBe(400)
    expect(body).toMatchObject({
      code: 'FLUXGATE_COST_UNKNOWN',
      detail: 'checks[1].costs.tokns is charged by no rule of the rule set. Its rules charge requests.',
    })
    expect((await ask('POST', check, user)).body.remaining).toBe(9)
  })
})

describe('POST /api/ratelimit/refund', () => {
  it('refunds the permits of a check, up to the capacity', async () => {
    const { ask } = await serverWith()
    const user = { userId: 'ann', path: '/users/7' }
    await ask('POST', check, { ...user, permits: 6 })
    expect(await ask('POST', '/api/ratelimit/refund', { ...user, permits: 3 })).toMatchObject({
      status: 200,
      body: { permits: 3 },
    })
    expect((await ask('POST', check, { ...user, peek: true })).body.remaining).toBe(6)
    await ask('POST', '/api/ratelimit/refund', { ...user, permits: 100 })
    expect((await ask('POST', check, { ...user, peek: true })).body.remaining).toBe(9)
  })
})
