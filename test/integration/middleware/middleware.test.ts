/** Behavior common to all frameworks, over real sockets. */
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { manualClock } from '../../../src/testing/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { adapters } from './adapters.js'
import { downStore, gateOf, limitsIn, startBed } from './test-app.js'

const startMs = 1_700_000_000_000
const soon = (ms: number): Promise<'not yet'> => new Promise((resolve) => setTimeout(resolve, ms, 'not yet'))

describe.each(adapters)('$name', (adapter) => {
  it('allows requests and reports the remaining permits', async () => {
    const bed = await startBed(adapter, [{ capacity: 2, window: '1m', clock: manualClock(startMs) }])
    const { status, text, headers } = await bed.ask({ path: '/a?b=c' })
    expect([status, text]).toEqual([200, 'hello'])
    expect(limitsIn(headers)).toEqual({
      'ratelimit-policy': '"limit.2-per-1m";q=2;w=60',
      ratelimit: '"limit.2-per-1m";r=1;t=30',
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': '1700000030',
    })
  })

  it('rejects requests over the limit with a problem document and all headers, without calling the application', async () => {
    const bed = await startBed(adapter, [{ capacity: 2, window: '1m', clock: manualClock(startMs) }])
    for (let i = 0; i < 2; i++) expect((await bed.ask()).status).toBe(200)
    const { status, text, headers } = await bed.ask()
    expect(status).toBe(429)
    expect(headers['content-type']).toMatch(/^application\/problem\+json\b/)
    expect(headers['content-length']).toBe(String(Buffer.byteLength(text)))
    expect(limitsIn(headers)).toEqual({
      'ratelimit-policy': '"limit.2-per-1m";q=2;w=60',
      ratelimit: '"limit.2-per-1m";r=0;t=30',
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1700000030',
      'retry-after': '30',
    })
    expect(JSON.parse(text)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      detail: 'The limit "limit.2-per-1m" of 2 is exhausted. Try again in 30 s.',
      'violated-policies': ['limit.2-per-1m'],
      retryAfterMs: 30_000,
    })
    expect(bed.application.calls).toBe(2)
    expect(bed.application.errors).toEqual([])
  })

  it('allows the same client again at the reported time', async () => {
    const clock = manualClock(startMs)
    const bed = await startBed(adapter, [{ capacity: 1, window: '10s', clock }])
    expect((await bed.ask()).status).toBe(200)
    clock.advance(9_999)
    expect((await bed.ask()).status).toBe(429)
    clock.advance(1)
    expect((await bed.ask()).status).toBe(200)
  })

  it('rejects HEAD with the same headers and no body', async () => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m' }])
    expect((await bed.ask({ method: 'HEAD' })).status).toBe(200)
    const { status, text, headers } = await bed.ask({ method: 'HEAD' })
    expect([status, text]).toEqual([429, ''])
    expect(headers).toMatchObject({ 'retry-after': '60', 'x-ratelimit-remaining': '0' })
    expect(headers['content-type']).toMatch(/^application\/problem\+json\b/)
  })

  it('delays a request until its turn under a leaky bucket', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 3, window: '3s' }] }, { clock })
    const bed = await startBed(adapter, [{ gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('the request is delayed', async () => (await gate.health()).waiting === 1)
    clock.advance(999)
    expect(await Promise.race([answer, soon(30)])).toBe('not yet')
    expect(bed.application.calls).toBe(1)
    clock.advance(1)
    const { status, headers } = await answer
    expect([status, headers['x-ratelimit-limit']]).toEqual([200, '3'])
  })

  it('delays a request until the refill under WAIT_FOR_REFILL, within the maximum wait', async () => {
    const clock = manualClock(startMs)
    const rule = { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 1_000, bands: [{ capacity: 1, window: '1s' }] } as const
    const gate = await gateOf(rule, { clock })
    const bed = await startBed(adapter, [{ gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('the request is delayed', async () => (await gate.health()).waiting === 1)
    expect((await bed.ask()).status).toBe(429)
    clock.advance(1_000)
    expect((await answer).status).toBe(200)
  })

  it('refunds the exact permits of a client that disconnects while it is delayed', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 10, window: '10s' }] }, { clock })
    const bed = await startBed(adapter, [{ gate, clock, permits: 2 }])
    const context = { clientIp: '127.0.0.1' }
    expect((await bed.ask()).status).toBe(200)
    const { request } = bed.begin()
    await eventually('the request is delayed', async () => (await gate.health()).waiting === 1)
    expect((await gate.check(context, { peek: true })).remaining).toBe(5)
    request.destroy()
    await eventually('the request is gone', async () => (await gate.health()).waiting === 0)
    await eventually(
      'the permits are refunded',
      async () => (await gate.check(context, { peek: true })).remaining === 7,
    )
    clock.advance(10_000)
    expect(bed.application.calls).toBe(1)
    expect(bed.application.errors).toEqual([])
  })

  it('delays up to its queue limit and rejects one more at once', async () => {
    const clock = manualClock(startMs)
    const rule = { algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }
    const gate = await gateOf(rule, { clock, waitForRefill: { maxConcurrentWaits: 2 } })
    const bed = await startBed(adapter, [{ gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const held = [bed.begin().answer, bed.begin().answer]
    await eventually('the requests are delayed', async () => (await gate.health()).waiting === 2)
    const { status, headers } = await bed.ask()
    expect([status, headers['retry-after']]).toEqual([429, '1'])
    clock.advance(2_000)
    expect((await Promise.all(held)).map((answer) => answer.status)).toEqual([200, 200])
  })

  it('rejects and refunds delayed requests when it closes', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }, { clock })
    const bed = await startBed(adapter, [{ gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('the request is delayed', async () => (await gate.health()).waiting === 1)
    const closing = bed.closeLimits()
    const { status, headers, text } = await answer
    expect([status, headers['retry-after']]).toEqual([503, '1'])
    expect(JSON.parse(text)).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      status: 503,
      retryAfterMs: 1_000,
    })
    await closing
    expect((await gate.check({ clientIp: '127.0.0.1' }, { peek: true })).remaining).toBe(3)
    expect(bed.application.calls).toBe(1)
  })

  it('rejects delayed requests when their gate closes', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }, { clock })
    const bed = await startBed(adapter, [{ gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('the request is delayed', async () => (await gate.health()).waiting === 1)
    await gate.close()
    expect((await answer).status).toBe(503)
  })

  it('completes delayed requests if only the server closes', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }, { clock })
    const bed = await startBed(adapter, [{ gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('the request is delayed', async () => (await gate.health()).waiting === 1)
    const closed = new Promise((resolve) => bed.server.close(resolve))
    clock.advance(1_000)
    expect((await answer).status).toBe(200)
    await closed
  })

  it('evaluates shadow rules without showing them', async () => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m', mode: 'SHADOW' }])
    for (let i = 0; i < 3; i++) {
      const { status, headers } = await bed.ask()
      expect([status, limitsIn(headers)]).toEqual([200, {}])
    }
  })

  it('does not limit requests that are excluded, not included, or skipped', async () => {
    const bed = await startBed(adapter, [
      {
        capacity: 1,
        window: '1m',
        includePatterns: ['/api/**'],
        excludePatterns: ['/api/health'],
        skip: (request) => headersIn(request)['x-internal'] === 'yes',
      },
    ])
    const free = [
      { path: '/other' },
      { path: '/api/health?now' },
      { path: '/api//Health/' },
      { path: '/api/a', headers: { 'X-Internal': 'yes' } },
    ]
    for (const question of [...free, ...free])
      expect(limitsIn((await bed.ask(question)).headers), question.path).toEqual({})
    expect((await bed.ask({ path: '/api/a' })).status).toBe(200)
    expect((await bed.ask({ path: '/%61pi/a' })).status).toBe(429)
  })

  it.each([
    ['ANONYMOUS', [200, 429, 200]],
    ['SKIP', [200, 200, 200]],
    ['DENY', [429, 429, 200]],
  ] as const)('follows onMissingKey for requests without a key: %s', async (onMissingKey, statuses) => {
    const bed = await startBed(adapter, [
      { capacity: 1, window: '1m', limitScope: 'USER_ID', userIdHeader: 'X-User-Id', onMissingKey },
    ])
    const answers = [await bed.ask(), await bed.ask(), await bed.ask({ headers: { 'X-User-Id': 'alice' } })]
    expect(answers.map(({ status }) => status)).toEqual(statuses)
  })

  it.each([
    ['LOCAL', [200, 429]],
    ['ALLOW', [200, 200]],
    ['DENY', [503, 503]],
  ] as const)('follows onStoreFailure while the store is down: %s', async (onStoreFailure, statuses) => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m', store: downStore, onStoreFailure }])
    const answers = [await bed.ask(), await bed.ask()]
    expect(answers.map(({ status }) => status)).toEqual(statuses)
    if (onStoreFailure !== 'DENY') return
    expect(limitsIn(answers[0]?.headers ?? {})).toEqual({ 'retry-after': '1' })
    expect(JSON.parse(answers[0]?.text ?? '')).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      status: 503,
    })
    expect(bed.application.calls).toBe(0)
  })

  it.each(['at once', 'later'])(
    'passes exceptions that the application throws %s to the framework, and runs it once',
    async (when) => {
      const error = new TypeError('application failed')
      const bed = await startBed(adapter, [{ capacity: 5, window: '1m' }], () => {
        if (when === 'at once') throw error
        return Promise.reject(error)
      })
      const { status } = await bed.ask()
      expect([status, bed.application.calls]).toEqual([500, 1])
      expect(bed.application.errors).toEqual([error])
      expect(bed.application.errors[0]).toBe(error)
      await bed.ask()
      expect(bed.application.calls).toBe(2)
    },
  )

  it('passes its own errors to the framework and does not call the application', async () => {
    const error = new RangeError('customize failed')
    const bed = await startBed(adapter, [
      {
        capacity: 5,
        window: '1m',
        customize: () => {
          throw error
        },
      },
    ])
    const warnings = warningsOf(adapter.name)
    expect((await bed.ask()).status).toBe(500)
    expect(bed.application.calls).toBe(0)
    expect(await warnings.seen(bed.application.errors)).toEqual([error])
  })

  it('passes the error of a closed gate to the framework', async () => {
    const gate = await gateOf({ bands: [{ capacity: 5, window: '1m' }] })
    const bed = await startBed(adapter, [{ gate }])
    const warnings = warningsOf(adapter.name)
    await gate.close()
    expect((await bed.ask()).status).toBe(500)
    expect(await warnings.seen(bed.application.errors)).toMatchObject([{ code: 'FLUXGATE_CLOSED' }])
  })

  it('determines key and permits with hooks and headers', async () => {
    const bed = await startBed(adapter, [
      {
        capacity: 10,
        window: '1m',
        limitScope: 'COMPOSITE',
        compositeKeyFields: ['USER_ID', 'API_KEY', 'attributes.plan'],
        userIdHeader: 'X-Account',
        apiKeyHeader: 'X-Token',
        permits: (request) => Number(headersIn(request)['x-cost'] ?? 1),
        customize: async (context, request) => ({ ...context, attributes: { plan: headersIn(request)['x-plan'] } }),
      },
    ])
    const remaining = async (headers: Record<string, string>) =>
      Number((await bed.ask({ headers })).headers['x-ratelimit-remaining'])
    const caller = { 'X-Account': 'a', 'X-Token': 't', 'X-Plan': 'free' }
    expect(await remaining(caller)).toBe(9)
    expect(await remaining({ ...caller, 'X-Cost': '4' })).toBe(5)
    expect(await remaining({ ...caller, 'X-Account': 'b' })).toBe(9)
    expect(await remaining({ ...caller, 'X-Token': 'u' })).toBe(9)
    expect(await remaining({ ...caller, 'X-Plan': 'paid' })).toBe(9)
    expect(await remaining({ ...caller, 'X-User-Id': 'z' })).toBe(4)
  })

  it('charges the costs that a hook returns, and refunds them', async () => {
    const rules = {
      id: 'llm',
      rules: [
        { id: 'requests', bands: [{ capacity: 60, window: '1h' }] },
        { id: 'tokens', cost: 'tokens', bands: [{ capacity: 100, window: '1h' }] },
      ],
    }
    const gate = await createFluxGate({ rules })
    onTestFinished(() => gate.close())
    const bed = await startBed(adapter, [
      {
        gate,
        costs: async (request) => {
          const tokens = headersIn(request)['x-tokens']
          return tokens === undefined ? undefined : { tokens: Number(tokens) }
        },
      },
    ])
    const ask = async (headers: Record<string, string>) => {
      const response = await bed.ask({ headers })
      return [response.status, Number(response.headers['x-ratelimit-remaining'])]
    }
    expect(await ask({ 'X-Tokens': '70' })).toEqual([200, 30])
    expect(await ask({ 'X-Tokens': '31' })).toEqual([429, 30])
    expect(await ask({})).toEqual([200, 58])
    expect(await ask({ 'X-Tokens': '30' })).toEqual([200, 0])
  })

  it.each([
    ['standard', ['ratelimit', 'ratelimit-policy'], ['ratelimit', 'ratelimit-policy', 'retry-after']],
    [
      'legacy',
      ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
      ['retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
    ],
    [false, [], ['retry-after']],
  ] as const)('sends the configured headers: %s', async (headers, allowed, rejected) => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m', headers }])
    expect(Object.keys(limitsIn((await bed.ask()).headers)).sort()).toEqual(allowed)
    expect(Object.keys(limitsIn((await bed.ask()).headers)).sort()).toEqual(rejected)
  })

  it.each([
    ['the tighter one first', [5, 10], 4],
    ['the tighter one last', [10, 5], 4],
  ] as const)(
    'lists the policies of several limits and describes the most restrictive one: %s',
    async (_, capacities, left) => {
      const clock = manualClock(startMs)
      const limits = capacities.map((capacity) => ({ id: `of-${capacity}`, capacity, window: '1m', clock }))
      const bed = await startBed(adapter, limits)
      const { headers } = await bed.ask()
      expect(String(headers['ratelimit-policy']).split(', ').sort()).toEqual([
        '"of-10.10-per-1m";q=10;w=60',
        '"of-5.5-per-1m";q=5;w=60',
      ])
      expect(headers).toMatchObject({
        ratelimit: `"of-5.5-per-1m";r=${left};t=12`,
        'x-ratelimit-limit': '5',
        'x-ratelimit-remaining': String(left),
        'x-ratelimit-reset': '1700000012',
      })
    },
  )

  it('describes the limit that rejects, whatever others have left', async () => {
    const clock = manualClock(startMs)
    const bed = await startBed(adapter, [
      { id: 'outer', capacity: 2, window: '1m', clock },
      { id: 'inner', capacity: 9, window: '1m', clock, permits: 10 },
    ])
    const { status, headers } = await bed.ask()
    expect(status).toBe(429)
    expect(limitsIn(headers)).toMatchObject({
      ratelimit: '"inner.9-per-1m";r=9;t=0',
      'x-ratelimit-limit': '9',
      'x-ratelimit-remaining': '9',
    })
    expect(String(headers['ratelimit-policy']).split(', ').sort()).toEqual([
      '"inner.9-per-1m";q=9;w=60',
      '"outer.2-per-1m";q=2;w=60',
    ])
    expect(bed.application.calls).toBe(0)
  })

  it('does not read a rejected upload', async () => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m' }])
    expect((await bed.ask({ method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'small' })).status).toBe(
      200,
    )
    const socket = connect(bed.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    // If the body were read first, there would be no response.
    socket.on('error', () => {})
    const ended = new Promise((resolve) => socket.once('close', resolve))
    socket.write('POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n')
    socket.write(Buffer.alloc(10_000))
    await eventually('the response has arrived', () => received.includes('\r\n\r\n'))
    expect(received).toMatch(/^HTTP\/1\.1 429 /)
    if (adapter.name !== 'fetch') {
      expect(received).toMatch(/\r\nconnection: close\r\n/i)
      await ended
    }
    socket.destroy()
    expect(bed.application.calls).toBe(1)
  })

  it('keeps the connection after rejecting a request without a body', async () => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m' }])
    const socket = connect(bed.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    for (const [index, status] of [200, 429, 429].entries()) {
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
      const answers = () => received.match(/HTTP\/1\.1 \d+/g) ?? []
      await eventually('the response has arrived', () => answers().length === index + 1)
      expect(answers().at(-1)).toBe(`HTTP/1.1 ${status}`)
    }
    socket.destroy()
  })
})

/** A fetch handler has no connection; its server handles unread bodies. */
describe.each(adapters.filter(({ name }) => name !== 'fetch'))('$name', (adapter) => {
  it.each([
    ['a long', 1_000_000, true],
    ['a short', 60_000, false],
  ])('delivers the rejection of %s upload to a client that is still sending', async (_, length, isClosed) => {
    // The connection stays open while the client is sending.
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m' }])
    expect((await bed.ask()).status).toBe(200)
    const socket = connect(bed.port, '127.0.0.1').on('error', () => {})
    // A reset discards data that has arrived but was not read.
    socket.pause()
    socket.write(`POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`)
    // This response is sent after that of the upload.
    expect((await bed.ask()).status).toBe(429)
    socket.write(Buffer.alloc(length))
    expect((await bed.ask()).status).toBe(429)
    if (!isClosed) socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    let received = ''
    for await (const chunk of socket) received += chunk
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(isClosed ? ['HTTP/1.1 429'] : ['HTTP/1.1 429', 'HTTP/1.1 429'])
    expect(bed.application.calls).toBe(1)
  })
})

/** Returns the headers of a request of any framework. */
function headersIn(native: unknown): Record<string, string | undefined> {
  const { headers, req, raw } = native as { headers?: unknown; req?: { raw?: unknown }; raw?: { headers: unknown } }
  if (req !== undefined) return headersIn(req.raw ?? req)
  if (headers instanceof Headers) return Object.fromEntries(headers)
  return (headers ?? raw?.headers) as Record<string, string>
}

/** Without a framework to handle an error, it becomes a process warning. */
function warningsOf(name: string) {
  if (name !== 'node') return { seen: async (errors: readonly unknown[]) => errors }
  const heard = new Promise<Error>((resolve) => process.once('warning', resolve))
  return { seen: async () => [await heard] }
}
