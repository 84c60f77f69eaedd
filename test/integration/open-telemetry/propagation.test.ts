/** Traces continue through the gateway and HttpHandler, with the instrumentations of OpenTelemetry and without them. */
import { request } from 'node:http'
import { context, propagation, trace } from '@opentelemetry/api'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { HttpHandler } from '../../../src/handlers/http/http-handler.js'
import { decisionsOf, startOpenTelemetry, type TestSdk } from '../../fixtures/open-telemetry.js'
import { ask, type Echo, echoUpstream, gatewayWith, sent, upstream } from '../../fixtures/test-gateway.js'
import { wholeServer } from '../../fixtures/test-server.js'

const traceId = 'ab'.repeat(16)
const clientSpan = 'cd'.repeat(8)
const traced = {
  traceparent: `00-${traceId}-${clientSpan}-01`,
  tracestate: 'vendor=1',
  baggage: 'tenant=acme',
}

const oneAnHour = { name: 'RateLimiter', args: { bands: [{ capacity: 1, window: '1h' }] } }

async function gatewayTo(filters: unknown[] = [], gateway = {}) {
  const { url: uri } = await echoUpstream()
  const upstreamPath = 'RewritePath=/.*, /upstream'
  const route = { id: 'all', uri, predicates: ['Path=/**'], filters: [...filters, upstreamPath] }
  return gatewayWith({ routes: [route], gateway })
}

const echoOf = ({ body }: { body: string }): Echo => JSON.parse(body) as Echo

let sdk: TestSdk
/** The instrumentations cannot be applied twice in a process, so they ignore requests unless a test turns them on. */
const isTraced = { incoming: false, outgoing: false, undici: false }
beforeAll(() => {
  sdk = startOpenTelemetry([
    new HttpInstrumentation({
      ignoreIncomingRequestHook: ({ url }) => !isTraced.incoming || url === '/upstream',
      ignoreOutgoingRequestHook: ({ path }) => !isTraced.outgoing || path === '/in',
    }),
    new UndiciInstrumentation({ ignoreRequestHook: () => !isTraced.undici }),
  ])
})
beforeEach(() => {
  Object.assign(isTraced, { incoming: false, outgoing: false, undici: false })
})
afterAll(() => sdk.stop())

describe('the gateway', () => {
  const kindOf = (spanId: string | undefined) => sdk.spans().find((span) => span.spanContext().spanId === spanId)?.kind

  it('forwards the trace headers of the client if no trace is active', async () => {
    const { url } = await gatewayTo()
    const echo = echoOf(await ask(url, { headers: traced }))
    for (const [name, value] of Object.entries(traced)) expect(sent(echo, name)).toEqual([value])
  })

  it('sends its own span as the parent, with the state and the baggage of the client', async () => {
    isTraced.incoming = true
    const { url } = await gatewayTo()
    const echo = echoOf(await ask(url, { headers: traced }))
    const [parent = ''] = sent(echo, 'traceparent')
    expect(sent(echo, 'traceparent')).toHaveLength(1)
    expect(parent).toMatch(new RegExp(`^00-${traceId}-(?!${clientSpan})[\\da-f]{16}-01$`))
    expect(sent(echo, 'tracestate')).toEqual(['vendor=1'])
    expect(sent(echo, 'baggage')).toEqual(['tenant=acme'])
  })

  it('starts a trace for a client that sends none, and replaces invalid headers', async () => {
    isTraced.incoming = true
    const { url } = await gatewayTo()
    for (const headers of [{}, { traceparent: '00-zz-zz-01', tracestate: 'x=1' }]) {
      const echo = echoOf(await ask(url, { headers }))
      expect(sent(echo, 'traceparent')).toEqual([expect.stringMatching(/^00-[\da-f]{32}-[\da-f]{16}-01$/)])
      expect(sent(echo, 'tracestate')).toEqual([])
    }
  })

  it('sends one parent, the span of the upstream request, if undici is instrumented too', async () => {
    Object.assign(isTraced, { incoming: true, undici: true })
    const { url } = await gatewayTo([], { maxConnections: 4 })
    // More requests than connections, so that some are sent while others end.
    const echoes = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const id = i.toString(16).padStart(32, '1')
        const reply = await ask(url, { headers: { ...traced, traceparent: `00-${id}-${clientSpan}-01` } })
        return { id, echo: echoOf(reply) }
      }),
    )
    const ids = new Set(echoes.map(({ id }) => id))
    const ended = () => sdk.spans().filter((span) => ids.has(span.spanContext().traceId))
    await expect.poll(() => ended().length).toBe(80)
    for (const { id, echo } of echoes) {
      const parents = sent(echo, 'traceparent')
      expect(parents).toHaveLength(1)
      const [, sentId, spanId] = (parents[0] as string).split('-')
      expect(sentId).toBe(id)
      expect(kindOf(spanId)).toBe(2)
      expect(sent(echo, 'baggage')).toEqual(['tenant=acme'])
    }
  })

  it('sends requests with trailers as they are, although node:http is instrumented', async () => {
    Object.assign(isTraced, { incoming: true, outgoing: true })
    const { port } = await gatewayTo()
    const body = await new Promise<string>((resolve, reject) => {
      const headers = { ...traced, Trailer: 'X-Sum', 'X-Twice': ['a', 'b'] }
      const sending = request({ host: '127.0.0.1', port, path: '/in', method: 'POST', headers }, async (response) => {
        let text = ''
        for await (const chunk of response) text += chunk
        resolve(text)
      })
      sending.on('error', reject)
      sending.write('body')
      sending.addTrailers({ 'X-Sum': '4' })
      sending.end()
    })
    const echo = JSON.parse(body) as Echo
    expect(echo).toMatchObject({ body: 'body', trailers: ['X-Sum', '4'] })
    expect(sent(echo, 'x-twice')).toEqual(['a', 'b'])
    expect(sent(echo, 'traceparent')).toEqual([expect.stringMatching(new RegExp(`^00-${traceId}-`))])
  })

  it('adds its decisions to the span of the request', async () => {
    isTraced.incoming = true
    const { url } = await gatewayTo([oneAnHour])
    const id = 'ef'.repeat(16)
    const headers = { traceparent: `00-${id}-${clientSpan}-01` }
    const statuses = [(await ask(url, { headers })).status, (await ask(url, { headers })).status]
    expect(statuses).toEqual([200, 429])
    const ended = () => sdk.spans().filter((span) => span.spanContext().traceId === id)
    await expect.poll(() => ended().length).toBe(2)
    expect(ended().map((span) => span.parentSpanContext?.spanId)).toEqual([clientSpan, clientSpan])
    const outcomes = ended().map((span) => decisionsOf(span).map((event) => event['fluxgate.outcome']))
    expect(outcomes).toEqual([['allowed'], ['denied']])
  })
})

describe('HttpHandler', () => {
  const shop = { ruleSetId: 'shop' }
  const login = { clientIp: '192.0.2.1', method: 'POST', path: '/login' }

  /** The trace IDs of the latest decisions of the server, latest first. */
  async function tracesAt(server: Awaited<ReturnType<typeof wholeServer>>): Promise<unknown[]> {
    const { body } = await server.ask('GET', '/api/decisions/recent')
    return (body as { decisions: { traceId: string }[] }).decisions.map((one) => one.traceId)
  }

  it('sends the active span with a call', async () => {
    let headers: NodeJS.Dict<string | string[]> = {}
    const { url } = await upstream((message, response) => {
      headers = message.headers
      response.statusCode = 500
      response.end()
    })
    const handler = new HttpHandler({ url, onStoreFailure: 'ALLOW', logger: { warn() {} }, timeoutMs: 10_000 })
    const own = await sdk.inSpan(async (span) => {
      const baggage = propagation.createBaggage({ tenant: { value: 'acme' } })
      await context.with(propagation.setBaggage(context.active(), baggage), () => handler.check(login))
      return span.spanContext()
    })
    expect(headers.traceparent).toBe(`00-${own.traceId}-${own.spanId}-01`)
    expect(headers.baggage).toBe('tenant=acme')
    await handler.check(login)
    expect(headers.traceparent).toBeUndefined()
    await handler.close()
  })

  it('keeps the checks of several traces apart, although they share a call', async () => {
    const server = await wholeServer()
    const handler = new HttpHandler({ url: server.url, timeoutMs: 10_000, headers: ['x-app'] })
    const traces = await Promise.all(
      [1, 2, 3].map(() =>
        sdk.inSpan(async (span) => {
          await handler.check({ ...login, headers: { 'x-app': 'ios' } }, shop)
          return span.spanContext().traceId
        }),
      ),
    )
    expect(new Set(traces).size).toBe(3)
    expect((await tracesAt(server)).sort()).toEqual(traces.sort())
    await handler.close()
  })

  it('lets the server find a check by the trace of the call, if its headers name none', async () => {
    const server = await wholeServer()
    const reply = await fetch(`${server.url}/api/ratelimit/check`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', traceparent: traced.traceparent },
      body: JSON.stringify({ ...login, ...shop, headers: { 'x-app': 'ios' } }),
    })
    expect(reply.status).toBe(200)
    expect(await tracesAt(server)).toEqual([traceId])
    expect(trace.getActiveSpan()).toBeUndefined()
  })
})
