/** The options of the middlewares that change what is counted and how requests are rejected, over every framework. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { manualClock } from '../../../src/testing/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { type Adapter, adapters } from './adapters.js'
import { type Bed, downStore, gateOf, limitsIn, type Question, startBed } from './test-app.js'

const minute = { capacity: 1, window: '1m' } as const
const clientIp = '127.0.0.1'

const statuses = async (bed: Bed, ...requests: Question[]): Promise<number[]> => {
  const found: number[] = []
  for (const request of requests) found.push((await bed.ask(request)).status)
  return found
}
const as = (user: string) => ({ headers: { 'x-user': user } })
const user = (adapter: Adapter) => (request: unknown) => adapter.header(request as never, 'x-user')

describe.each(adapters)('$name', (adapter) => {
  const isNest = adapter.name === 'nest'

  it('takes a gate as gate, and as handler', async () => {
    const gate = await gateOf({ bands: [{ capacity: 2, window: '1m' }] })
    const bed = await startBed(adapter, [{ gate }])
    const other = await startBed(adapter, [{ handler: gate }])
    expect([(await bed.ask()).status, (await other.ask()).status, (await bed.ask()).status]).toEqual([200, 200, 429])
  })

  it.each([
    ['returned', (key: string | undefined) => key],
    ['promised', async (key: string | undefined) => key],
  ])('counts the key that is %s for a request', async (_, given) => {
    const bed = await startBed(adapter, [{ ...minute, key: (request) => given(user(adapter)(request)) }])
    expect(await statuses(bed, as('ann'), as('bob'), as('ann'), {}, {})).toEqual([200, 200, 429, 200, 429])
  })

  it('counts a number like the string of its digits', async () => {
    const results = [7, '7', 7n, 8]
    const bed = await startBed(adapter, [{ ...minute, key: () => results.shift() }])
    expect(await statuses(bed, {}, {}, {}, {})).toEqual([200, 429, 429, 200])
  })

  it.each([
    [Number.NaN, 'NaN'],
    [{ id: 7 }, 'an object'],
    [true, 'true'],
  ])('reports the key %j to the framework, and does not call the application', async (key, received) => {
    const bed = await startBed(adapter, [{ ...minute, key: () => key as never }])
    expect(await statuses(bed, {})).toEqual([500])
    expect(bed.application.calls).toBe(0)
    if (adapter.name !== 'node')
      expect(bed.application.errors).toEqual([
        expect.objectContaining({
          code: 'FLUXGATE_ARGUMENT_INVALID',
          message: `The result of key(request) must be a string, a number, or undefined for a request without a key; received ${received}.`,
        }),
      ])
  })

  it('applies onMissingKey to a request without a key', async () => {
    const bed = await startBed(adapter, [{ ...minute, onMissingKey: 'SKIP', key: user(adapter) }])
    expect(await statuses(bed, {}, {}, as('ann'), as('ann'))).toEqual([200, 200, 200, 429])
  })

  it('counts the key under all rules of a gate but GLOBAL ones', async () => {
    const gate = await gateOf({ bands: [{ capacity: 1, window: '1m' }] })
    const bed = await startBed(adapter, [{ gate, key: user(adapter) }])
    expect(await statuses(bed, as('ann'), as('bob'), as('ann'))).toEqual([200, 200, 429])
    const shared = await gateOf({ limitScope: 'GLOBAL', bands: [{ capacity: 2, window: '1m' }] })
    const global = await startBed(adapter, [{ gate: shared, key: user(adapter) }])
    expect(await statuses(global, as('ann'), as('bob'), as('cem'))).toEqual([200, 200, 429])
  })

  it.each([
    ['returned', (cost: number) => cost],
    ['promised', async (cost: number) => cost],
  ])('charges the permits that are %s, and nothing for 0', async (_, given) => {
    const permits = (request: unknown) => given(Number(adapter.header(request as never, 'x-cost')))
    const bed = await startBed(adapter, [{ capacity: 5, window: '1m', permits, clock: manualClock(0) }])
    const remaining = async (cost: string) =>
      (await bed.ask({ headers: { 'x-cost': cost } })).headers['x-ratelimit-remaining']
    expect([await remaining('3'), await remaining('0'), await remaining('2')]).toEqual(['2', undefined, '0'])
    expect(await statuses(bed, { headers: { 'x-cost': '0' } }, { headers: { 'x-cost': '1' } })).toEqual([200, 429])
  })

  it.each([
    ['returned', (capacity: number) => capacity],
    ['promised', async (capacity: number) => capacity],
  ])('applies the capacity that is %s for a request, on one bucket', async (_, given) => {
    const capacity = (request: unknown) => given(user(adapter)(request) === 'premium' ? 3 : 1)
    const limit = { capacity, window: '1h', algorithm: 'FIXED_WINDOW', clock: manualClock(0) } as const
    const bed = await startBed(adapter, [limit])
    expect(await statuses(bed, {}, {}, as('premium'), as('premium'), as('premium'), {})).toEqual([
      200, 429, 200, 200, 429, 429,
    ])
    const { headers } = await bed.ask(as('premium'))
    expect(headers['ratelimit-policy']).toBe('"limit.per-1h";q=3;w=3600')
  })

  it('applies the bands that are returned for a request', async () => {
    const hour = { capacity: 2, window: '1h' }
    const bands = (request: unknown) => (user(adapter)(request) ? [hour, { capacity: 1, window: '1s' }] : [hour])
    const bed = await startBed(adapter, [{ bands, algorithm: 'FIXED_WINDOW', clock: manualClock(0) }])
    expect(await statuses(bed, as('trial'), as('trial'), {}, {})).toEqual([200, 429, 200, 429])
    const { headers } = await bed.ask(as('trial'))
    expect(headers['ratelimit-policy']).toBe('"limit.per-1h";q=2;w=3600, "limit.per-1s";q=1;w=1')
  })

  it('decides several named limits together', async () => {
    const limits = {
      burst: { capacity: 1, window: '1h', path: '/burst' },
      total: { capacity: 2, window: '1h', limitScope: 'GLOBAL' },
    } as const
    const bed = await startBed(adapter, [{ limits, clock: manualClock(0) }])
    const path = '/burst'
    expect(await statuses(bed, { path }, { path }, { path: '/' }, { path: '/' })).toEqual([200, 429, 200, 429])
    const { headers } = await bed.ask({ path })
    expect(headers['ratelimit-policy']).toBe('"burst.1-per-1h";q=1;w=3600, "total.2-per-1h";q=2;w=3600')
  })

  it('reports an invalid capacity to the framework, and does not call the application', async () => {
    const bed = await startBed(adapter, [{ capacity: () => Number.NaN, window: '1h' }])
    expect((await bed.ask()).status).toBe(500)
    expect(bed.application.calls).toBe(0)
    if (adapter.name !== 'node')
      expect(bed.application.errors).toEqual([
        expect.objectContaining({
          code: 'FLUXGATE_ARGUMENT_INVALID',
          message: 'The result of capacity(request) must be an integer from 0 to 1000000000; received NaN.',
        }),
      ])
  })

  it('reports a missing result of permits to the framework, and does not call the application', async () => {
    const bed = await startBed(adapter, [{ ...minute, permits: () => undefined as never }])
    expect(await statuses(bed, {})).toEqual([500])
    expect(bed.application.calls).toBe(0)
    if (adapter.name !== 'node')
      expect(bed.application.errors).toEqual([
        expect.objectContaining({
          code: 'FLUXGATE_ARGUMENT_INVALID',
          message: 'The result of permits(request) must be an integer from 0 to 1000000000; received nothing.',
        }),
      ])
  })

  it('charges the costs of a request in one decision, and nothing for 0', async () => {
    const gate = await createFluxGate({
      rules: {
        id: 'api',
        rules: [
          { id: 'requests', bands: [{ capacity: 3, window: '1h' }] },
          { id: 'tokens', cost: 'tokens', bands: [{ capacity: 100, window: '1h' }] },
        ],
      },
      store: memoryStore({ clock: manualClock(0) }),
    })
    onTestFinished(() => gate.close())
    const costs = async (request: unknown) => {
      const tokens = adapter.header(request as never, 'x-tokens')
      return tokens === undefined ? undefined : { tokens: Number(tokens) }
    }
    const permits = (request: unknown) => Number(adapter.header(request as never, 'x-cost') ?? 1)
    const bed = await startBed(adapter, [{ gate, costs, permits }])
    const spend = (tokens: string, cost = '1') => ({ headers: { 'x-tokens': tokens, 'x-cost': cost } })
    const left = async () => {
      const { bands } = await gate.check({ clientIp }, { permits: 0, costs: { tokens: 0 } })
      return bands.map(({ remaining }) => remaining)
    }
    expect(await statuses(bed, spend('60'), spend('60'), {})).toEqual([200, 429, 200])
    expect(await left()).toEqual([1, 40])
    expect(await statuses(bed, spend('40', '0'))).toEqual([200])
    expect(await left()).toEqual([1, 0])
    expect(await statuses(bed, spend('0', '0'), { headers: { 'x-cost': '0' } }, {}, {})).toEqual([200, 200, 200, 429])
  })

  it('skips requests by a promise', async () => {
    const bed = await startBed(adapter, [{ ...minute, skip: async (request) => user(adapter)(request) === 'ops' }])
    expect(await statuses(bed, as('ops'), as('ops'), {}, {})).toEqual([200, 200, 200, 429])
  })

  it('refunds requests whose response does not count', async () => {
    const gate = await gateOf({ bands: [{ capacity: 2, window: '1h' }] }, { clock: manualClock(0) })
    const seen: unknown[] = []
    const bed = await startBed(adapter, [
      {
        gate,
        permits: 1,
        countWhen: async ({ status, decision }, request) => {
          seen.push([status, decision.remaining, user(adapter)(request)])
          return status >= 400
        },
      },
    ])
    // A peek returns the permits that its own request would leave.
    const left = async () => (await gate.check({ clientIp }, { peek: true })).remaining + 1
    for (const status of [200, 201, 200]) {
      bed.application.status = status
      expect((await bed.ask(as('ann'))).status).toBe(status)
      await eventually('the permit is refunded', async () => (await left()) === 2)
    }
    bed.application.status = 401
    expect((await bed.ask()).status).toBe(401)
    await eventually('the response is counted', async () => seen.length === 4)
    expect([seen, await left()]).toEqual([
      [
        [200, 1, 'ann'],
        [201, 1, 'ann'],
        [200, 1, 'ann'],
        [401, 1, undefined],
      ],
      1,
    ])
    bed.application.status = 403
    expect([(await bed.ask()).status, (await bed.ask()).status]).toEqual([403, 429])
  })

  it('sends the headers of the chosen dialects', async () => {
    const bed = await startBed(adapter, [{ ...minute, clock: manualClock(0), headers: ['draft-6', 'legacy-seconds'] }])
    for (const status of [200, 429]) {
      const answer = await bed.ask()
      expect([answer.status, limitsIn(answer.headers)]).toEqual([
        status,
        {
          'ratelimit-policy': '1;w=60',
          'ratelimit-limit': '1',
          'ratelimit-remaining': '0',
          'ratelimit-reset': '60',
          'x-ratelimit-limit': '1',
          'x-ratelimit-remaining': '0',
          'x-ratelimit-reset': '60',
          ...(status === 429 && { 'retry-after': '60' }),
        },
      ])
    }
  })

  it('sends the status and the message of the options', async () => {
    const text = await startBed(adapter, [{ ...minute, statusCode: 420, message: 'Enhance your calm.' }])
    await text.ask()
    const rejected = await text.ask()
    expect(rejected).toMatchObject({ status: 420, headers: { 'retry-after': '60' } })
    // Exception filters of Nest send strings in an object.
    if (isNest) expect(JSON.parse(rejected.text)).toEqual({ statusCode: 420, message: 'Enhance your calm.' })
    else expect(rejected.text).toBe('Enhance your calm.')
    expect(rejected.headers['content-type']).toBe(
      isNest ? 'application/json; charset=utf-8' : 'text/plain; charset=utf-8',
    )
    const json = await startBed(adapter, [{ ...minute, message: { error: 'too many' } }])
    await json.ask()
    const object = await json.ask()
    expect([object.status, JSON.parse(object.text), object.headers['content-type']]).toEqual([
      429,
      { error: 'too many' },
      'application/json; charset=utf-8',
    ])
  })

  it('sends the message that a function returns', async () => {
    const bed = await startBed(adapter, [
      {
        ...minute,
        clock: manualClock(0),
        message: async ({ retryAfterMs }, request) => ({ user: user(adapter)(request), retryAfterMs }),
      },
    ])
    await bed.ask()
    expect(JSON.parse((await bed.ask(as('ann'))).text)).toEqual({ user: 'ann', retryAfterMs: 60_000 })
  })

  it('reports a result of message that is neither text nor an object to the framework', async () => {
    for (const [result, received] of [
      [undefined, 'nothing'],
      [7, '7'],
    ]) {
      const bed = await startBed(adapter, [{ ...minute, message: () => result as never }])
      expect(await statuses(bed, {}, {})).toEqual([200, 500])
      if (adapter.name !== 'node')
        expect(bed.application.errors).toEqual([
          expect.objectContaining({
            code: 'FLUXGATE_ARGUMENT_INVALID',
            message: `The result of message(decision, request) must be a string or an object; received ${received}.`,
          }),
        ])
    }
  })

  it('keeps the problem document with another status', async () => {
    const bed = await startBed(adapter, [{ ...minute, statusCode: 403 }])
    await bed.ask()
    const { status, text, headers } = await bed.ask()
    expect([status, JSON.parse(text).status, headers['retry-after']]).toEqual([403, 403, '60'])
    expect(headers['content-type']).toMatch(/^application\/problem\+json\b/)
  })

  it('leaves the rejection to onRejected, with status and headers set', async () => {
    const bed = await startBed(adapter, [
      {
        ...minute,
        statusCode: 420,
        onRejected: async ({ reason }, request, reply) =>
          adapter.respond(reply as never, `${reason} ${user(adapter)(request)}`),
      },
    ])
    await bed.ask()
    const { status, text, headers } = await bed.ask(as('ann'))
    expect([status, text, headers['retry-after'], headers['x-ratelimit-remaining']]).toEqual([
      420,
      'LIMITED ann',
      '60',
      '0',
    ])
    expect(headers['content-type'] ?? '').not.toMatch(/problem/)
    expect(bed.application).toMatchObject({ calls: 1, errors: [] })
  })

  it('passes errors of onRejected to the framework', async () => {
    const failed = new Error('no reply')
    const throwing = () => {
      throw failed
    }
    for (const onRejected of [throwing, async () => throwing()]) {
      const bed = await startBed(adapter, [{ ...minute, onRejected }])
      await bed.ask()
      expect((await bed.ask()).status).toBe(500)
      if (adapter.name !== 'node') expect(bed.application.errors).toContain(failed)
    }
  })

  it('keeps the response that onRejected sent before it failed', async () => {
    const bed = await startBed(adapter, [
      {
        ...minute,
        onRejected: (_decision, _request, reply) => {
          adapter.respond(reply as never, 'sent')
          throw new Error('too late')
        },
      },
    ])
    await bed.ask()
    const { status, text } = await bed.ask()
    if (['koa', 'hono', 'fetch'].includes(adapter.name)) expect(status).toBe(500)
    else expect([status, text]).toEqual([429, 'sent'])
    expect((await bed.ask()).status).toBe(status)
  })

  it('keeps 503 and the problem document if the store fails', async () => {
    const store = {
      ...minute,
      store: downStore,
      onStoreFailure: 'DENY',
      statusCode: 420,
      message: 'slow down',
    } as const
    const { status, text } = await (await startBed(adapter, [store])).ask()
    expect([status, JSON.parse(text).status]).toEqual([503, 503])
  })
})

/** A Fetch API request has no place for the decision. */
describe.each(adapters.filter(({ name }) => name !== 'fetch'))('$name', (adapter) => {
  it('puts the decision on the request', async () => {
    const gate = await gateOf({ bands: [{ capacity: 5, window: '1m' }] })
    const bed = await startBed(adapter, [{ gate, skip: (request) => user(adapter)(request) === 'ops' }])
    await bed.ask()
    await bed.ask(as('ops'))
    const [counted, skipped] = bed.application.decisions
    expect(counted).toMatchObject({ allowed: true, remaining: 4, ruleId: 'rule' })
    expect(skipped ?? undefined).toBeUndefined()
  })
})
