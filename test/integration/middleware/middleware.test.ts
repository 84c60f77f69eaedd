/** The same promises for every framework, over real sockets. */
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { manualClock } from '../../../src/testing/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { adapters } from './adapters.js'
import { downStore, gateOf, limitsIn, startBed } from './test-app.js'

const startMs = 1_700_000_000_000
const soon = (ms: number): Promise<'not yet'> => new Promise((resolve) => setTimeout(resolve, ms, 'not yet'))

describe.each(adapters)('$name', (adapter) => {
  it('lets requests pass, and says what is left', async () => {
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

  it('refuses what is too much, with a problem and every header, and does not bother the application', async () => {
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
      detail: 'The limit "limit.2-per-1m" of 2 is used up. Try again in 30 s.',
      'violated-policies': ['limit.2-per-1m'],
      retryAfterMs: 30_000,
    })
    expect(bed.application.calls).toBe(2)
    expect(bed.application.errors).toEqual([])
  })

  it('lets the same caller pass again as soon as it said so', async () => {
    const clock = manualClock(startMs)
    const bed = await startBed(adapter, [{ capacity: 1, window: '10s', clock }])
    expect((await bed.ask()).status).toBe(200)
    clock.advance(9_999)
    expect((await bed.ask()).status).toBe(429)
    clock.advance(1)
    expect((await bed.ask()).status).toBe(200)
  })

  it('refuses HEAD with the same headers and no body', async () => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m' }])
    expect((await bed.ask({ method: 'HEAD' })).status).toBe(200)
    const { status, text, headers } = await bed.ask({ method: 'HEAD' })
    expect([status, text]).toEqual([429, ''])
    expect(headers).toMatchObject({ 'retry-after': '60', 'x-ratelimit-remaining': '0' })
    expect(headers['content-type']).toMatch(/^application\/problem\+json\b/)
  })

  it('holds a request until its turn under a leaky bucket', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 3, window: '3s' }] }, { clock })
    const bed = await startBed(adapter, [{ handler: gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('held', async () => (await gate.health()).waiting === 1)
    clock.advance(999)
    expect(await Promise.race([answer, soon(30)])).toBe('not yet')
    expect(bed.application.calls).toBe(1)
    clock.advance(1)
    const { status, headers } = await answer
    expect([status, headers['x-ratelimit-limit']]).toEqual([200, '3'])
  })

  it('holds a request until the refill under WAIT_FOR_REFILL, if that is not too long', async () => {
    const clock = manualClock(startMs)
    const rule = { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 1_000, bands: [{ capacity: 1, window: '1s' }] } as const
    const gate = await gateOf(rule, { clock })
    const bed = await startBed(adapter, [{ handler: gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('held', async () => (await gate.health()).waiting === 1)
    expect((await bed.ask()).status).toBe(429)
    clock.advance(1_000)
    expect((await answer).status).toBe(200)
  })

  it('gives back exactly what a client took who leaves while it is held', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 10, window: '10s' }] }, { clock })
    const bed = await startBed(adapter, [{ handler: gate, clock, permits: 2 }])
    const context = { clientIp: '127.0.0.1' }
    expect((await bed.ask()).status).toBe(200)
    const { request } = bed.begin()
    await eventually('held', async () => (await gate.health()).waiting === 1)
    expect((await gate.check(context, { peek: true })).remaining).toBe(5)
    request.destroy()
    await eventually('gone', async () => (await gate.health()).waiting === 0)
    await eventually('given back', async () => (await gate.check(context, { peek: true })).remaining === 7)
    clock.advance(10_000)
    expect(bed.application.calls).toBe(1)
    expect(bed.application.errors).toEqual([])
  })

  it('holds as many as it may, and refuses one more at once', async () => {
    const clock = manualClock(startMs)
    const rule = { algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }
    const gate = await gateOf(rule, { clock, waitForRefill: { maxConcurrentWaits: 2 } })
    const bed = await startBed(adapter, [{ handler: gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const held = [bed.begin().answer, bed.begin().answer]
    await eventually('held', async () => (await gate.health()).waiting === 2)
    const { status, headers } = await bed.ask()
    expect([status, headers['retry-after']]).toEqual([429, '1'])
    clock.advance(2_000)
    expect((await Promise.all(held)).map((answer) => answer.status)).toEqual([200, 200])
  })

  it('refuses those who are held when it closes, with their permits given back', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }, { clock })
    const bed = await startBed(adapter, [{ handler: gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('held', async () => (await gate.health()).waiting === 1)
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

  it('refuses those who are held when their gate closes', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }, { clock })
    const bed = await startBed(adapter, [{ handler: gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('held', async () => (await gate.health()).waiting === 1)
    await gate.close()
    expect((await answer).status).toBe(503)
  })

  it('lets those who are held finish when only the server closes', async () => {
    const clock = manualClock(startMs)
    const gate = await gateOf({ algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 5, window: '5s' }] }, { clock })
    const bed = await startBed(adapter, [{ handler: gate, clock }])
    expect((await bed.ask()).status).toBe(200)
    const { answer } = bed.begin()
    await eventually('held', async () => (await gate.health()).waiting === 1)
    const closed = new Promise((resolve) => bed.server.close(resolve))
    clock.advance(1_000)
    expect((await answer).status).toBe(200)
    await closed
  })

  it('counts shadows without showing them', async () => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m', mode: 'SHADOW' }])
    for (let i = 0; i < 3; i++) {
      const { status, headers } = await bed.ask()
      expect([status, limitsIn(headers)]).toEqual([200, {}])
    }
  })

  it('leaves alone what is excluded, not included, or skipped', async () => {
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
  ] as const)('treats requests without an identity as the rule says: %s', async (onMissingKey, statuses) => {
    const bed = await startBed(adapter, [
      { capacity: 1, window: '1m', limitScope: 'USER_ID', userIdHeader: 'X-User-Id', onMissingKey },
    ])
    const answers = [await bed.ask(), await bed.ask(), await bed.ask({ headers: { 'X-User-Id': 'somebody' } })]
    expect(answers.map(({ status }) => status)).toEqual(statuses)
  })

  it.each([
    ['LOCAL', [200, 429]],
    ['ALLOW', [200, 200]],
    ['DENY', [503, 503]],
  ] as const)('does what the rule says while the store is down: %s', async (onStoreFailure, statuses) => {
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
    'leaves what the application throws %s to the framework, and runs it once',
    async (when) => {
      const mistake = new TypeError('a mistake of the application')
      const bed = await startBed(adapter, [{ capacity: 5, window: '1m' }], () => {
        if (when === 'at once') throw mistake
        return Promise.reject(mistake)
      })
      const { status } = await bed.ask()
      expect([status, bed.application.calls]).toEqual([500, 1])
      expect(bed.application.errors).toEqual([mistake])
      expect(bed.application.errors[0]).toBe(mistake)
      await bed.ask()
      expect(bed.application.calls).toBe(2)
    },
  )

  it('hands its own errors to the framework, and does not let the request pass', async () => {
    const mistake = new RangeError('a mistake in customize')
    const bed = await startBed(adapter, [
      {
        capacity: 5,
        window: '1m',
        customize: () => {
          throw mistake
        },
      },
    ])
    const warnings = warningsOf(adapter.name)
    expect((await bed.ask()).status).toBe(500)
    expect(bed.application.calls).toBe(0)
    expect(await warnings.seen(bed.application.errors)).toEqual([mistake])
  })

  it('hands the error of a closed gate to the framework', async () => {
    const gate = await gateOf({ bands: [{ capacity: 5, window: '1m' }] })
    const bed = await startBed(adapter, [{ handler: gate }])
    const warnings = warningsOf(adapter.name)
    await gate.close()
    expect((await bed.ask()).status).toBe(500)
    expect(await warnings.seen(bed.application.errors)).toMatchObject([{ code: 'FLUXGATE_CLOSED' }])
  })

  it('asks hooks and headers who the caller is and what it costs', async () => {
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

  it.each([
    ['standard', ['ratelimit', 'ratelimit-policy'], ['ratelimit', 'ratelimit-policy', 'retry-after']],
    [
      'legacy',
      ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
      ['retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
    ],
    [false, [], ['retry-after']],
  ] as const)('tells of limits in the headers asked for: %s', async (headers, allowed, refused) => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m', headers }])
    expect(Object.keys(limitsIn((await bed.ask()).headers)).sort()).toEqual(allowed)
    expect(Object.keys(limitsIn((await bed.ask()).headers)).sort()).toEqual(refused)
  })

  it.each([
    ['the tighter one first', [5, 10], 4],
    ['the tighter one last', [10, 5], 4],
  ] as const)('lists the policies of several limits, and the tightest speaks: %s', async (_, capacities, left) => {
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
  })

  it('tells of the limit that refuses, whatever others have left', async () => {
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

  it('does not read an upload that it refuses', async () => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m' }])
    expect((await bed.ask({ method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'small' })).status).toBe(
      200,
    )
    const socket = connect(bed.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    // An end without an answer would be one that was read first.
    socket.on('error', () => {})
    const ended = new Promise((resolve) => socket.once('close', resolve))
    socket.write('POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n')
    socket.write(Buffer.alloc(10_000))
    await eventually('answered', () => received.includes('\r\n\r\n'))
    expect(received).toMatch(/^HTTP\/1\.1 429 /)
    if (adapter.name !== 'fetch') {
      expect(received).toMatch(/\r\nconnection: close\r\n/i)
      await ended
    }
    socket.destroy()
    expect(bed.application.calls).toBe(1)
  })

  it('keeps the connection of a refusal without a body', async () => {
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m' }])
    const socket = connect(bed.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    for (const [index, status] of [200, 429, 429].entries()) {
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
      const answers = () => received.match(/HTTP\/1\.1 \d+/g) ?? []
      await eventually('answered', () => answers().length === index + 1)
      expect(answers().at(-1)).toBe(`HTTP/1.1 ${status}`)
    }
    socket.destroy()
  })
})

/** A fetch handler has no connection; its server decides what becomes of an unread body. */
describe.each(adapters.filter(({ name }) => name !== 'fetch'))('$name', (adapter) => {
  it.each([
    ['a long', 1_000_000, true],
    ['a short', 60_000, false],
  ])('delivers the rejection of %s upload to a client that is still sending', async (_, length, isClosed) => {
    // The connection lingers for as long as the client takes here.
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const bed = await startBed(adapter, [{ capacity: 1, window: '1m' }])
    expect((await bed.ask()).status).toBe(200)
    const socket = connect(bed.port, '127.0.0.1').on('error', () => {})
    // A reset discards what has arrived and was not read.
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

/** The headers of a request, whatever framework it is of. */
function headersIn(native: unknown): Record<string, string | undefined> {
  const { headers, req, raw } = native as { headers?: unknown; req?: { raw?: unknown }; raw?: { headers: unknown } }
  if (req !== undefined) return headersIn(req.raw ?? req)
  if (headers instanceof Headers) return Object.fromEntries(headers)
  return (headers ?? raw?.headers) as Record<string, string>
}

/** Where there is no framework to handle an error, it is a warning of the process. */
function warningsOf(name: string) {
  if (name !== 'node') return { seen: async (errors: readonly unknown[]) => errors }
  const heard = new Promise<Error>((resolve) => process.once('warning', resolve))
  return { seen: async () => [await heard] }
}
