import { expect, it } from 'vitest'
import { serverWith, wholeServer } from '../../fixtures/test-server.js'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`
const check = { ruleSetId: 'shop', clientIp: '203.0.113.7', path: '/shop/cart?token=x', method: 'GET', permits: 5 }
const path = '/api/ratelimit/explain/rejection'

it('finds a past rejection by the RateLimit header and the trace ID', async () => {
  const { ask } = await wholeServer()
  await ask('POST', '/api/ratelimit/check', check)
  await ask('POST', '/api/ratelimit/check', check, { traceparent })
  await ask('POST', '/api/ratelimit/check', { ...check, headers: { 'x-trace-id': 'abc' } })
  const { body } = await ask('POST', path, { ratelimit: '"per-address.minute";r=0;t=12', traceId })
  expect(body.policies).toEqual([
    { ruleSetId: 'shop', ruleId: 'per-address', band: 'minute', limit: 5, windowMs: 60_000 },
  ])
  expect(body).toMatchObject({ remaining: 0, resetSeconds: 12 })
  expect(body.rejections).toHaveLength(1)
  expect(body.rejections[0]).toMatchObject({
    ruleSetId: 'shop',
    ruleId: 'per-address',
    band: 'minute',
    limit: 5,
    remaining: 0,
    method: 'GET',
    path: '/shop/cart',
    traceId,
  })
  const found = async (query: object) => (await ask('POST', path, query)).body.rejections.length
  expect(await found({ traceId: 'abc' })).toBe(1)
  expect(await found({ ratelimit: 'RateLimit: "per-address.minute";r=0;t=12' })).toBe(2)
  expect(await found({ ratelimit: '"global.hour";r=0;t=1' })).toBe(0)
  expect(await found({ traceId: 'unknown' })).toBe(0)
  expect(await found({ traceId, ruleSetId: 'other' })).toBe(0)
})

it('rejects a query without header and trace ID, and an unreadable header', async () => {
  const { ask } = await wholeServer()
  expect((await ask('POST', path, {})).body.detail).toBe('body: must have `ratelimit` or `traceId`')
  const { status, body } = await ask('POST', path, { ratelimit: 'limit=10' })
  expect(status).toBe(400)
  expect(body.detail).toContain('such as "reads.per-minute";r=0;t=12')
})

it('lists recent rejections apart from allowed decisions', async () => {
  const { ask } = await wholeServer()
  await ask('POST', '/api/ratelimit/check', { ...check, permits: 6 })
  const checks = Array.from({ length: 510 }, (_, i) => ({ ...check, clientIp: `10.0.${i % 2}.${i % 250}` }))
  await ask('POST', '/api/ratelimit/check/batch', { checks })
  const recent = async (query: string) => (await ask('GET', `/api/decisions/recent?limit=1000&${query}`)).body.decisions
  expect((await recent('allowed=false')).at(-1)).toMatchObject({ reason: 'IMPOSSIBLE' })
  expect((await recent('allowed=true')).every(({ allowed }: { allowed: boolean }) => allowed)).toBe(true)
  expect(await recent('traceId=nobody')).toEqual([])
})

it('returns the window of a calendar, and 0 for requests in progress, as decisions do', async () => {
  const bands = [
    { label: 'slots', capacity: 2, algorithm: 'CONCURRENCY' },
    { label: 'day', capacity: 9, algorithm: 'FIXED_WINDOW', calendar: 'DAY' },
  ] as const
  const { ask } = await serverWith({ ruleSets: { id: 'api', rules: [{ id: 'jobs', bands }] } })
  const policiesOf = async (label: string) =>
    (await ask('POST', path, { ratelimit: `"jobs.${label}";r=0` })).body.policies
  expect(await policiesOf('slots')).toMatchObject([{ limit: 2, windowMs: 0 }])
  expect(await policiesOf('day')).toMatchObject([{ limit: 9, windowMs: 86_400_000 }])
})
