/** Concurrency limits over REST, and with HttpHandler. */
import { expect, it, onTestFinished } from 'vitest'
import { HttpHandler } from '../../../src/handlers/index.js'
import { createFluxGate } from '../../../src/index.js'
import { createServer } from '../../../src/program/create-server.js'

async function served() {
  const bands = [{ algorithm: 'CONCURRENCY', capacity: 1, maxHold: '60s' }] as const
  const gate = await createFluxGate({ rules: { id: 'api', rules: [{ id: 'slots', bands }] } })
  const server = createServer({ gate })
  const { url } = await server.listen({ port: 0 })
  onTestFinished(async () => {
    await server.close()
    await gate.close()
  })
  return { gate, url }
}

it('returns a holdId, and releases and renews it', async () => {
  const { url } = await served()
  const post = async (path: string, body: object) => {
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(`${url}/api/ratelimit/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    return { status: response.status, ...((await response.json()) as Record<string, unknown>) }
  }
  const { allowed, holdId } = (await post('check', { clientIp: '203.0.113.7' })) as {
    allowed?: boolean
    holdId?: string
  }
  expect([allowed, typeof holdId]).toEqual([true, 'string'])
  const rejected = await post('check', { clientIp: '203.0.113.7' })
  expect(rejected).toMatchObject({ allowed: false, reason: 'LIMITED' })
  expect(rejected).not.toHaveProperty('holdId')
  expect(await post('renew', { holdId })).toEqual({ status: 200, renewed: true })
  expect(await post('release', { holdId })).toEqual({ status: 200, released: true })
  expect(await post('release', { holdId })).toEqual({ status: 200, released: false })
  expect(await post('renew', { holdId })).toEqual({ status: 200, renewed: false })
  expect(await post('release', { holdId: 'x' })).toMatchObject({ status: 400, code: 'FLUXGATE_ARGUMENT_INVALID' })
  expect(await post('check', { clientIp: '203.0.113.7' })).toMatchObject({ allowed: true })
})

it('is released by HttpHandler', async () => {
  const { gate, url } = await served()
  const handler = new HttpHandler({ url, timeoutMs: 10_000 })
  onTestFinished(() => handler.close())
  const { holdId = '' } = await handler.check({ clientIp: '203.0.113.7' })
  expect((await handler.check({ clientIp: '203.0.113.7' })).allowed).toBe(false)
  expect(await handler.renew(holdId)).toBe(true)
  expect(await handler.release(holdId)).toBe(true)
  expect(gate.heldCount).toBe(0)
})
