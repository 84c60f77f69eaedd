/** Servers with buckets in a real Redis: shared limits, and outages. */
import { describe, expect, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { serverWith } from '../../fixtures/test-server.js'
import { startRedis } from '../../servers/redis-server.js'

const check = '/api/ratelimit/check'
const login = { clientIp: '203.0.113.7', path: '/login' }

describe('buckets in Redis', () => {
  it('are shared by all servers, and a batch of a thousand takes few calls', async () => {
    const redis = await stopAfterTest(startRedis())
    // Longer than the default, so that a busy machine causes no degraded decisions.
    const gateOptions = { store: redis.uri, resilience: { timeoutMs: 10_000 } }
    const one = await serverWith({ gateOptions })
    const other = await serverWith({ gateOptions })
    const answers = []
    for (const { ask } of [one, other, one]) answers.push((await ask('POST', check, login)).body.allowed)
    expect(answers).toEqual([true, true, false])
    const checks = Array.from({ length: 1_000 }, (_, i) => ({ clientIp: `198.51.100.${i % 250}`, path: '/login' }))
    await one.ask('POST', `${check}/batch`, { checks: checks.slice(0, 1) })
    const calls = await countCalls(redis, ['evalsha'], async () => {
      const { body } = await one.ask('POST', `${check}/batch`, { checks })
      const allowed = body.decisions.filter((decision: { allowed: boolean }) => decision.allowed)
      // Two for each of 250 addresses; one address has one earlier request.
      expect(allowed).toHaveLength(499)
    })
    expect(calls.evalsha).toBeLessThanOrEqual(20)
  })

  it('that are unreachable: decisions are degraded, refunds get 503, and readiness reports since when', async () => {
    const redis = await stopAfterTest(startRedis())
    const store = redisStore(redis.uri, { timeoutMs: 20_000 })
    const { ask, gate } = await serverWith({ gateOptions: { store } })
    expect((await ask('POST', check, login)).body).toMatchObject({ allowed: true, degraded: false })
    await redis.stop()
    const body = await eventually('a degraded decision', async () => {
      const answer = await ask('POST', check, login)
      expect(answer.status).toBe(200)
      return answer.body.degraded ? answer.body : undefined
    })
    expect(body).toMatchObject({ degraded: true, ruleId: 'login' })
    const ready = await ask('GET', '/health/ready')
    expect(ready).toMatchObject({ status: 200, body: { status: 'DEGRADED', store: { status: 'DOWN' } } })
    expect((await ask('GET', '/health/ready?strict')).status).toBe(503)
    expect(ready.body.store.sinceAt).toBeTypeOf('number')
    expect(ready.body.store.error).toMatch(/Redis/)
    expect((await ask('GET', '/health/live')).status).toBe(200)
    const refund = await ask('POST', '/api/ratelimit/refund', login)
    expect(refund.status).toBe(503)
    expect(refund.body.code).toMatch(/^FLUXGATE_STORE_/)
    expect(refund.text).not.toContain(String(redis.port))
    await gate.close()
    await store.close()
  })
})
