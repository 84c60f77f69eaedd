import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../fixtures/eventually.js'
import { type TestServer, wholeServer } from '../../fixtures/test-server.js'

interface Event {
  readonly id: number
  readonly name: string
  // biome-ignore lint/suspicious/noExplicitAny: tests compare it with what it has to be
  readonly data: any
}

/** Subscribes to /api/events as a browser does. */
async function listen(url: string, headers: Record<string, string> = {}) {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const response = await fetch(`${url}/api/events`, { headers, signal: leaving.signal })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const events: Event[] = []
  let text = ''
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true })
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const fields = Object.fromEntries(
          text
            .slice(0, end)
            .split('\n')
            .map((line) => line.split(/: (.*)/s).slice(0, 2)),
        )
        text = text.slice(end + 2)
        if (fields.event !== undefined)
          events.push({ id: Number(fields.id), name: fields.event, data: JSON.parse(fields.data) })
      }
    }
  })().catch(() => {})
  return { events, reading, leave: () => leaving.abort() }
}

const named = (events: readonly Event[], name: string) => events.filter((event) => event.name === name)
const check = ({ ask }: Pick<TestServer, 'ask'>, clientIp = '203.0.113.7') =>
  ask('POST', '/api/ratelimit/check', { ruleSetId: 'shop', clientIp, path: '/shop/cart?secret=1', method: 'GET' })

describe('GET /api/events', () => {
  it('starts with the current state, then reports decisions, reloads and health', async () => {
    const server = await wholeServer()
    const { events } = await listen(server.url, { 'Last-Event-ID': '"><x' })
    await eventually('the beginning', () => named(events, 'health')[0])
    expect(events).toMatchObject([{ id: 1, name: 'health', data: { status: 'UP', error: null } }])
    await check(server)
    const sent = await eventually('a decision', () => named(events, 'decision')[0])
    expect(sent.data).toMatchObject({
      allowed: true,
      ruleSetId: 'shop',
      ruleId: 'per-address',
      remaining: 4,
      weight: 1,
    })
    await server.ask('PATCH', '/api/rule-sets/shop/rules/global', { enabled: false })
    const reload = await eventually('a reload', () => named(events, 'reload').find(({ data }) => data.changed))
    expect(reload.data).toEqual({ changed: true, error: null })
    const ids = events.map(({ id }) => id)
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
  })

  it('ends when the server stops', async () => {
    const { url, server } = await wholeServer()
    const { reading } = await listen(url)
    await Promise.all([reading, server.close(60_000)])
  })

  it('subscribes to the gate only while a client is connected', async () => {
    const { url, gate } = await wholeServer()
    let listeners = 0
    const on = gate.on.bind(gate)
    gate.on = ((name: 'decision', listener: () => void) => {
      listeners += 1
      const stop = on(name, listener)
      return () => {
        listeners -= 1
        stop()
      }
    }) as typeof gate.on
    const first = await listen(url)
    const second = await listen(url)
    expect(listeners).toBe(4)
    first.leave()
    second.leave()
    await eventually('no listener is left', () => listeners === 0)
  })

  it('accepts a hundred clients', async () => {
    const { url, ask } = await wholeServer()
    const listening = await Promise.all(Array.from({ length: 100 }, () => listen(url)))
    const { status, headers, body } = await ask('GET', '/api/events')
    expect(status).toBe(503)
    expect(body.code).toBe('FLUXGATE_UNAVAILABLE')
    expect(headers.get('retry-after')).toBe('10')
    listening[0]?.leave()
    await eventually('a slot is free', async () => {
      const again = await fetch(`${url}/api/events`, { method: 'HEAD' })
      return again.status === 200
    })
  })
})
