/** Every middleware, with decisions from a FluxGate server. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { HttpHandler, type HttpHandlerOptions } from '../../../src/handlers/index.js'
import { createFluxGate, type RuleInput } from '../../../src/index.js'
import { createServer } from '../../../src/program/create-server.js'
import { eventually } from '../../fixtures/eventually.js'
import { adapters } from './adapters.js'
import { limitsIn, startBed } from './test-app.js'

async function remote(rule: Omit<RuleInput, 'id'>, options: Partial<HttpHandlerOptions> = {}) {
  const gate = await createFluxGate({ rules: { id: 'api', rules: [{ id: 'limit', ...rule }] } })
  const server = createServer({ gate })
  const { url } = await server.listen({ port: 0 })
  const handler = new HttpHandler({ url, timeoutMs: 10_000, ...options })
  onTestFinished(async () => {
    await handler.close()
    await server.close()
    await gate.close()
  })
  return { gate, server, handler }
}

describe.each(adapters)('$name over a server', (adapter) => {
  it('responds as with local decisions', async () => {
    const { handler } = await remote({ bands: [{ capacity: 1, window: '1h' }] })
    const { ask, application } = await startBed(adapter, [{ handler, ruleSetId: 'api' }])
    const passed = await ask()
    expect([passed.status, passed.text]).toEqual([200, 'hello'])
    expect(limitsIn(passed.headers)).toMatchObject({
      'ratelimit-policy': '"limit.1-per-1h";q=1;w=3600',
      'x-ratelimit-remaining': '0',
    })
    const rejected = await ask()
    expect(rejected.status).toBe(429)
    expect(Number(rejected.headers['retry-after'])).toBeGreaterThan(3_500)
    expect(JSON.parse(rejected.text)).toMatchObject({ 'violated-policies': ['limit.1-per-1h'] })
    expect(application.calls).toBe(1)
  })

  it('refunds a client that disconnects while it is delayed', async () => {
    const { handler, gate } = await remote({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 2, window: '1h' }] })
    const { ask, begin, application } = await startBed(adapter, [{ handler }])
    await ask()
    const isFull = async () => !(await gate.check({ clientIp: '127.0.0.1' }, { peek: true })).allowed
    const { request } = begin()
    await eventually('the request is delayed', isFull)
    request.destroy()
    await eventually('the permit is refunded', async () => !(await isFull()))
    expect(application.calls).toBe(1)
  })

  it('responds with 503 under DENY and allows under ALLOW if there is no server', async () => {
    for (const [onStoreFailure, status] of [
      ['DENY', 503],
      ['ALLOW', 200],
    ] as const) {
      const handler = new HttpHandler({ url: 'http://127.0.0.1:1', onStoreFailure })
      const { ask } = await startBed(adapter, [{ handler }])
      expect((await ask()).status).toBe(status)
      await handler.close()
    }
  })
})
