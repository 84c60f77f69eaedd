/** Decisions as metrics and span events of a real OpenTelemetry SDK. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { HttpHandler } from '../../../src/handlers/http/http-handler.js'
import { rateLimit } from '../../../src/middleware/express.js'
import { metricFamilies } from '../../../src/telemetry/metrics.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { parseOpenMetrics } from '../../fixtures/open-metrics.js'
import { decisionsOf, startOpenTelemetry, type TestSdk } from '../../fixtures/open-telemetry.js'
import { wholeServer } from '../../fixtures/test-server.js'

let sdk: TestSdk
beforeAll(() => {
  sdk = startOpenTelemetry()
})
afterAll(() => sdk.stop())

const perAddress = { id: 'per-address', bands: [{ label: 'minute', capacity: 1, window: '1m' }] }
const request = { clientIp: '192.0.2.1', path: '/' }

async function gateOf(id: string, options: { metrics?: boolean; rules?: object[] } = {}) {
  const { metrics = false, rules = [perAddress] } = options
  const gate = await createFluxGate({ rules: { id, rules: rules as never }, metrics, clock: manualClock(0) })
  onTestFinished(() => gate.close())
  return gate
}

/** The decisions of the last span that has ended. */
const last = () => decisionsOf(sdk.spans().at(-1))

describe('events of the active span', () => {
  it('contain rule set, rule, band and outcome of a decision, but not its key', async () => {
    const gate = await gateOf('api')
    await sdk.inSpan(async () => {
      await gate.check(request)
      await gate.check(request)
      await gate.check(request, { peek: true })
    })
    const common = { 'fluxgate.rule_set': 'api', 'fluxgate.rule': 'per-address', 'fluxgate.band': 'minute' }
    expect(last()).toEqual([
      {
        ...common,
        'fluxgate.outcome': 'allowed',
        'fluxgate.reason': 'ALLOWED',
        'fluxgate.limit': 1,
        'fluxgate.remaining': 0,
      },
      {
        ...common,
        'fluxgate.outcome': 'denied',
        'fluxgate.reason': 'LIMITED',
        'fluxgate.limit': 1,
        'fluxgate.remaining': 0,
        'fluxgate.retry_after_ms': 60_000,
      },
    ])
    expect(JSON.stringify(last())).not.toContain('192.0.2.1')
  })

  it('name rejections by shadow rules, and unknown rule sets', async () => {
    const shadow = { id: 'trial', mode: 'SHADOW', bands: [{ capacity: 0, window: '1m' }] }
    const gate = await gateOf('shadowed', { rules: [perAddress, shadow] })
    await sdk.inSpan(async () => {
      await gate.check(request)
      await gate.check(request, { ruleSetId: 'x'.repeat(300) })
    })
    expect(last()).toEqual([
      expect.objectContaining({ 'fluxgate.outcome': 'allowed', 'fluxgate.shadow_denied': ['trial'] }),
      {
        'fluxgate.rule_set': 'x'.repeat(128),
        'fluxgate.outcome': 'allowed',
        'fluxgate.reason': 'NO_RULE_SET',
      },
    ])
  })

  it('are not added to spans that are not sampled', async () => {
    const gate = await gateOf('unsampled')
    const before = sdk.spans().length
    const events: string[] = []
    await sdk.inSpan(async (span) => {
      span.addEvent = (name) => {
        events.push(name)
        return span
      }
      await gate.check(request)
    }, false)
    expect(events).toEqual([])
    expect(sdk.spans()).toHaveLength(before)
  })

  it('belong to the span of their own request, if requests overlap', async () => {
    const gate = await gateOf('overlapping', { rules: [{ ...perAddress, bands: [{ capacity: 50, window: '1m' }] }] })
    const before = sdk.spans().length
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        sdk.inSpan(async (span) => {
          span.setAttribute('number', i)
          await new Promise((resolve) => setImmediate(resolve))
          await gate.check(request, { permits: i + 1 > 9 ? 1 : i + 1 })
        }),
      ),
    )
    const spans = sdk.spans().slice(before)
    expect(spans).toHaveLength(20)
    for (const span of spans) expect(decisionsOf(span)).toHaveLength(1)
  })

  it('are added by limiters, also for calls of a variant and synchronous ones', async () => {
    const limiter = createLimiter({ id: 'jobs', capacity: 2, window: '1m', clock: manualClock(0) })
    await sdk.inSpan(async () => {
      limiter.consumeSync('a')
      await limiter.consume('a', { permits: 5, partial: true })
      await limiter.consume('a')
      await limiter.peek('a')
      await limiter.consume('a', 0)
    })
    expect(last().map((event) => [event['fluxgate.rule'], event['fluxgate.outcome']])).toEqual([
      ['jobs', 'allowed'],
      ['jobs', 'allowed'],
      ['jobs', 'denied'],
    ])
    await limiter.close()
  })

  it('are added by the limits of middleware', async () => {
    const app = express()
    app.use((_, __, next) => void sdk.inSpan(async () => next()))
    app.use(rateLimit({ id: 'page', capacity: 1, window: '1m' }))
    app.use((_, response) => void response.end('ok'))
    const server = createServer(app).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const before = sdk.spans().length
    const statuses = [(await fetch(url)).status, (await fetch(url)).status]
    expect(statuses).toEqual([200, 429])
    const outcomes = sdk
      .spans()
      .slice(before)
      .flatMap(decisionsOf)
      .map((event) => [event['fluxgate.rule'], event['fluxgate.outcome']])
    expect(outcomes).toEqual([
      ['page', 'allowed'],
      ['page', 'denied'],
    ])
  })

  it('are added by HttpHandler for decisions of the server, and for those made without it', async () => {
    const server = await wholeServer()
    const handler = new HttpHandler({ url: server.url, timeoutMs: 10_000 })
    const lost = new HttpHandler({
      url: 'http://127.0.0.1:1',
      onStoreFailure: 'DENY',
      connectTimeoutMs: 0,
      logger: { warn() {} },
    })
    await sdk.inSpan(async () => {
      await handler.check({ ...request, method: 'POST', path: '/login' }, { ruleSetId: 'shop' })
      await lost.check(request)
    })
    const [served, failed] = last()
    expect(served).toMatchObject({ 'fluxgate.rule_set': 'shop', 'fluxgate.outcome': 'allowed' })
    expect(failed).toMatchObject({
      'fluxgate.outcome': 'denied',
      'fluxgate.reason': 'STORE_FAILURE',
      'fluxgate.degraded': true,
      'fluxgate.degraded_cause': 'FLUXGATE_STORE_FAILED',
    })
    await handler.close()
    await lost.close()
  })
})

describe('metrics', () => {
  const sample = async (series: string): Promise<number> => {
    const line = (await sdk.metrics()).find((one) => one.startsWith(`${series} `))
    return Number(line?.slice(series.length + 1))
  }

  it('have the names and labels of Prometheus, so that dashboards and alerts apply to both', async () => {
    const rule = { ...perAddress, ban: { after: 9, within: '1m', for: '1h' } }
    const gate = await gateOf('named', { metrics: true, rules: [rule] })
    await gate.check(request)
    await gate.check({ ...request, clientIp: '192.0.2.2' })
    await gate.check(request)
    const exported = await sdk.metrics()
    const types = exported.flatMap((line) => /^# TYPE (\S+) (\S+)$/.exec(line)?.slice(1, 3).join(' ') ?? [])
    expect(types.sort()).toEqual(
      Object.entries(metricFamilies)
        // The exporter for Node.js does not write units. A collector adds `_seconds`.
        .map(([name, { type }]) => `${name.replace(/_seconds$/, '')} ${type}`)
        .sort(),
    )
    const own = (await gate.metrics()).split('\n').filter((line) => line.includes('rule_set="named"'))
    expect(own).toHaveLength(6)
    for (const line of own) expect(exported).toContain(line)
    expect(await sample('fluxgate_decisions_total{rule_set="named",rule="per-address",result="denied"}')).toBe(1)
  })

  it('sum the gates of a process, and keep the counts of closed ones', async () => {
    const series = 'fluxgate_decisions_total{rule_set="twice",rule="per-address",result="allowed"}'
    const [one, two] = [await gateOf('twice'), await gateOf('twice')]
    await one.check(request)
    await two.check(request)
    expect(await sample(series)).toBe(2)
    await one.close()
    expect(await sample(series)).toBe(2)
    await two.check({ ...request, clientIp: '192.0.2.3' })
    expect(await sample(series)).toBe(3)
    await two.close()
    expect(await sample(series)).toBe(3)
  })

  it('count the decisions of limiters, from the first one on', async () => {
    const limiter = createLimiter({ id: 'counted', capacity: 2, window: '1m' })
    for (let i = 0; i < 5; i++) limiter.consumeSync('a')
    await expect
      .poll(() => sample('fluxgate_decisions_total{rule_set="limiter",rule="counted",result="denied"}'))
      .toBe(3)
    expect(await sample('fluxgate_decisions_total{rule_set="limiter",rule="counted",result="allowed"}')).toBe(2)
    await limiter.close()
  })

  it('have a histogram of durations with the bounds of Prometheus', async () => {
    const before = await sample('fluxgate_decision_duration_count')
    const gate = await gateOf('timed')
    await gate.check(request)
    expect(await sample('fluxgate_decision_duration_count')).toBe(before + 1)
    const bounds = (await sdk.metrics()).flatMap((line) => /^fluxgate_\w+_bucket\{le="([^"]+)"/.exec(line)?.[1] ?? [])
    expect(bounds).toHaveLength(19)
    expect(bounds[0]).toBe('0.000001')
  })

  it('do not turn on gate.metrics(), which is an option of its own', async () => {
    const gate = await gateOf('off')
    await expect(gate.metrics()).rejects.toMatchObject({ code: 'FLUXGATE_CONFIG_INVALID' })
  })

  it('have exemplars with the trace of the active span', async () => {
    const gate = await gateOf('exemplary', { metrics: true })
    const traceId = await sdk.inSpan(async (span) => {
      await gate.check({ ...request, headers: { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` } })
      return span.spanContext().traceId
    })
    const samples = parseOpenMetrics(await gate.metrics({ format: 'OPENMETRICS' })).flatMap((one) => one.samples)
    const traces = samples.flatMap(({ exemplar }) => exemplar?.labels.trace_id ?? [])
    expect(new Set(traces)).toEqual(new Set([traceId]))
  })
})
