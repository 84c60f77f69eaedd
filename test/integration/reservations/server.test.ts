/** Reservations over REST, and with HttpHandler. */
import { expect, it, onTestFinished } from 'vitest'
import { HttpHandler } from '../../../src/handlers/index.js'
import { createFluxGate } from '../../../src/index.js'
import { createServer } from '../../../src/program/create-server.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { freePort } from '../../servers/free-port.js'

const limit = (id: string, capacity: number, fields: object = {}) => ({
  ...{ id, limitScope: 'API_KEY' as const, bands: [{ capacity, window: '1m' }] },
  ...fields,
})
const rules = { id: 'llm', rules: [limit('requests', 60), limit('tokens', 1_000, { cost: 'tokens' })] }
const context = { apiKey: 'k' }

async function served() {
  const clock = manualClock(1_800_000_000_000)
  const gate = await createFluxGate({ rules, clock, metrics: true })
  const server = createServer({ gate })
  const { url } = await server.listen({ port: 0 })
  onTestFinished(async () => {
    await server.close()
    await gate.close()
  })
  return { gate, url, clock }
}

it('are made, settled and canceled over REST', async () => {
  const { gate, url, clock } = await served()
  const post = async (path: string, body: object) => {
    const headers = { 'Content-Type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(`${url}/api/ratelimit/${path}`, init)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const estimate = { ...context, costs: { tokens: 800 }, ttlMs: 30_000, id: 'job 7' }
  const reserved = await post('reserve', estimate)
  expect(reserved).toMatchObject({ status: 200, body: { id: 'job 7', decision: { allowed: true, remaining: 59 } } })
  expect(await post('reserve', estimate)).toEqual(reserved)
  expect(await gate.metrics()).toContain('\nfluxgate_reservations 1\n')
  expect(await post('settle', { id: 'job 7', costs: { tokns: 3 } })).toMatchObject({
    status: 400,
    body: { code: 'FLUXGATE_COST_UNKNOWN' },
  })
  expect(await post('settle', { id: 'job 7', costs: { tokens: -1, requests: 1 } })).toMatchObject({
    status: 400,
    body: { errors: [{ path: 'costs.tokens', message: 'must be an integer from 0 to 1000000000; received -1' }] },
  })
  const settled = await post('settle', { id: 'job 7', costs: { tokens: 300 } })
  expect(settled).toMatchObject({ status: 200, body: { id: 'job 7', status: 'SETTLED' } })
  expect(await post('cancel', { id: 'job 7' })).toEqual(settled)
  expect(await gate.metrics()).toContain('\nfluxgate_reservations 0\n')
  expect(await post('reserve', { ...estimate, id: 'job 8' })).toMatchObject({
    status: 200,
    body: { decision: { allowed: false, ruleId: 'tokens', retryAfterMs: 6_000 } },
  })
  expect(await post('settle', { id: 'job 8' })).toMatchObject({
    status: 404,
    body: { code: 'FLUXGATE_RESERVATION_UNKNOWN' },
  })
  const { body } = await post('reserve', { ...context, ttlMs: 10, costs: null, id: null })
  clock.advance(10)
  expect(await post('cancel', { id: body.id })).toMatchObject({
    status: 410,
    body: { code: 'FLUXGATE_RESERVATION_EXPIRED' },
  })
  for (const invalid of [{ ttlMs: 0 }, { ttlMs: 1e12 }, {}, { ttlMs: 1, id: '' }, { ttlMs: 1, id: 'a\nb' }])
    expect((await post('reserve', { ...context, ...invalid })).status).toBe(400)
})

it('names an unknown member of the request in a warning', async () => {
  const { url } = await served()
  const response = await fetch(`${url}/api/ratelimit/reserve`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...context, ttlMs: 1_000, onExpired: 'REFUND' }),
  })
  expect(response.headers.get('fluxgate-warning')).toContain('onExpire')
})

it('are made, settled and canceled by HttpHandler', async () => {
  const { gate, url } = await served()
  const handler = new HttpHandler({ url, timeoutMs: 10_000 })
  onTestFinished(() => handler.close())
  const { decision, id } = await handler.reserve(context, { costs: { tokens: 800 }, ttlMs: 30_000 })
  expect(decision).toMatchObject({ allowed: true, degraded: false })
  const settled = await handler.settle(id, { permits: 1, costs: { tokens: 300 } })
  expect(settled).toEqual(await gate.settle(id))
  expect(await handler.cancel(id)).toEqual(settled)
  const codeOf = (call: Promise<unknown>) => call.catch(({ code }) => code)
  expect(await codeOf(handler.settle('none'))).toBe('FLUXGATE_RESERVATION_UNKNOWN')
  expect(await codeOf(handler.settle(id, { costs: { tokns: 3 } }))).toBe('FLUXGATE_COST_UNKNOWN')
  expect(await codeOf(handler.reserve(context, { ttlMs: 0 }))).toBe('FLUXGATE_ARGUMENT_INVALID')
  expect(handler.breaker).toBe('CLOSED')
})

it('are decided by the policy of HttpHandler while the server is down', async () => {
  const fallback = await createFluxGate({ rules, clock: manualClock(1_800_000_000_000) })
  onTestFinished(() => fallback.close())
  const down = async (options: object) => {
    const url = `http://127.0.0.1:${await freePort()}`
    const handler = new HttpHandler({ url, connectTimeoutMs: 100, logger: { warn() {} }, ...options })
    onTestFinished(() => handler.close())
    return handler
  }
  const options = { costs: { tokens: 800 }, ttlMs: 30_000, id: 'job' }

  const local = await down({ fallback })
  expect((await local.reserve(context, options)).decision).toMatchObject({
    allowed: true,
    degraded: true,
    remaining: 59,
  })
  expect(await local.settle('job', { costs: { tokens: 300 } })).toEqual(await fallback.settle('job'))

  const allowing = await down({ onStoreFailure: 'ALLOW' })
  expect((await allowing.reserve(context, options)).decision).toMatchObject({ allowed: true, reason: 'STORE_FAILURE' })
  const settled = await allowing.settle('job', { costs: { tokens: 300 } })
  expect(settled).toMatchObject({ id: 'job', status: 'SETTLED' })
  expect(await allowing.cancel('job')).toEqual(settled)

  const denying = await down({ onStoreFailure: 'DENY' })
  expect((await denying.reserve(context, options)).decision).toMatchObject({ allowed: false, reason: 'STORE_FAILURE' })
  await expect(denying.settle('job')).rejects.toMatchObject({ code: expect.stringMatching(/^FLUXGATE_STORE_/) })
})
