import { describe, expect, it } from 'vitest'
import { keyDigest } from '../../../src/telemetry/key-digest.js'
import { serverWith } from '../../fixtures/test-server.js'

const explain = '/api/ratelimit/explain'
const login = { clientIp: '203.0.113.7', path: '/login', method: 'POST' }

describe('POST /api/ratelimit/explain', () => {
  it('lists every rule with its buckets or the condition that failed, and charges nothing', async () => {
    const { ask } = await serverWith({ revealKeys: true })
    await ask('POST', '/api/ratelimit/check', login)
    const { status, body } = await ask('POST', explain, login)
    expect(status).toBe(200)
    expect((await ask('POST', explain, login)).body).toEqual(body)
    expect(body.rules).toEqual([
      {
        ruleId: 'login',
        name: null,
        priority: 0,
        mode: 'ENFORCE',
        status: 'MATCHED',
        failed: null,
        buckets: [
          {
            key: '203.0.113.7',
            shadow: false,
            override: null,
            bands: [
              {
                label: 'hour',
                limit: 2,
                remaining: 1,
                resetAt: 1_700_001_800_000,
                windowMs: 3_600_000,
                allowed: true,
                retryAfterMs: 0,
              },
            ],
          },
        ],
      },
      {
        ruleId: 'users',
        name: null,
        priority: 0,
        mode: 'ENFORCE',
        status: 'NOT_MATCHED',
        failed: { field: 'path', expected: ['/users/**'], received: '/login' },
        buckets: [],
      },
    ])
    expect(body).toMatchObject({ ruleSetId: 'api', paths: ['/login'], omitted: 0 })
    expect(body.decision).toMatchObject({ allowed: true, ruleId: 'login', remaining: 0 })
  })

  it('shows keys and API keys as digests, unless keys are revealed', async () => {
    const rules = {
      id: 'api',
      rules: [
        { id: 'login', bands: [{ label: 'hour', capacity: 2, window: '1h' }] },
        { id: 'partner', when: { apiKey: 'partner-key' }, bands: [{ capacity: 2, window: '1h' }] },
      ],
    }
    const { ask } = await serverWith({ ruleSets: rules })
    const { body, text } = await ask('POST', explain, { ...login, apiKey: 'my-secret' })
    const digest = keyDigest('203.0.113.7')
    expect(body.rules[0].buckets[0].key).toBe(digest)
    expect(body.decision.key).toBe(digest)
    expect(body.decision.bands[0].key).toBe(digest)
    expect(body.rules[1].failed.received).toBe(keyDigest('my-secret'))
    expect(text).not.toContain('my-secret')
    expect(text).not.toContain('203.0.113.7')
  })

  it('takes costs, so that rules for other costs than requests apply', async () => {
    const band = { label: 'minute', capacity: 1000, window: '1m' }
    const { ask } = await serverWith({
      ruleSets: { id: 'api', rules: [{ id: 'tokens', cost: 'tokens', bands: [band] }] },
    })
    const { body } = await ask('POST', explain, { ...login, costs: { tokens: 300 } })
    expect(body.rules[0]).toMatchObject({ ruleId: 'tokens', status: 'MATCHED' })
    expect(body.decision).toMatchObject({ ruleId: 'tokens', limit: 1000, remaining: 700 })
    expect((await ask('POST', explain, { ...login, costs: { tokens: -1 } })).status).toBe(400)
  })

  it('explains a rejection: the band, its level and when it allows the request', async () => {
    const { ask } = await serverWith()
    for (let i = 0; i < 3; i++) await ask('POST', '/api/ratelimit/check', login)
    const { body } = await ask('POST', explain, login)
    expect(body.decision).toMatchObject({ allowed: false, reason: 'LIMITED', retryAfterMs: 1_800_000 })
    expect(body.rules[0].buckets[0].bands[0]).toMatchObject({ remaining: 0, allowed: false, retryAfterMs: 1_800_000 })
  })

  it('limits the number of rules that do not apply', async () => {
    const rule = (id: number, path: string) => ({ id: `r${id}`, path, bands: [{ capacity: 1, window: '1s' }] })
    const rules = [...Array.from({ length: 30 }, (_, i) => rule(i, `/other/${i}`)), rule(99, '/login')]
    const { ask } = await serverWith({ ruleSets: { id: 'api', rules } })
    const { body } = await ask('POST', explain, { ...login, limit: 3 })
    expect(body.rules.map(({ ruleId }: { ruleId: string }) => ruleId)).toEqual(['r0', 'r1', 'r10', 'r99'])
    expect(body.omitted).toBe(27)
  })

  it('requires the admin token, because it shows rules', async () => {
    const { ask } = await serverWith({ adminToken: 'admin', checkToken: 'check' })
    expect((await ask('POST', explain, login, { Authorization: 'Bearer check' })).status).toBe(401)
    expect((await ask('POST', explain, login, { Authorization: 'Bearer admin' })).status).toBe(200)
  })

  it('is not counted in statistics and emits no event', async () => {
    const { ask, gate } = await serverWith()
    let events = 0
    gate.on('decision', () => events++)
    await ask('POST', explain, login)
    expect(events).toBe(0)
  })
})
