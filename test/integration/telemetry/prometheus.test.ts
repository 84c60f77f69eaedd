import { Counter, Registry } from 'prom-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { collectGateMetrics } from '../../../src/prometheus.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { parseOpenMetrics } from '../../fixtures/open-metrics.js'

const rules = { id: 'api', rules: [{ id: 'r', bands: [{ capacity: 1, window: '1m' }] }] }

async function gateWith(options: { metrics?: boolean }) {
  const gate = await createFluxGate({ rules, clock: manualClock(0), ...options })
  onTestFinished(() => gate.close())
  return gate
}

const canonical = (le: string): string =>
  le === '+Inf'
    ? le
    : Number(le)
        .toExponential()
        .replace(/e([+-])(\d)$/, 'e$10$2')

const context = { clientIp: '192.0.2.1', path: '/' }

describe('metrics of an embedded gate', () => {
  it('are the Prometheus text of its decisions, without peeks', async () => {
    const gate = await gateWith({ metrics: true })
    for (let i = 0; i < 3; i++) await gate.check(context)
    await gate.check(context, { peek: true })
    await gate.reload()
    const text = await gate.metrics()
    expect(text).toContain('fluxgate_decisions_total{rule_set="api",rule="r",result="allowed"} 1\n')
    expect(text).toContain('fluxgate_decisions_total{rule_set="api",rule="r",result="denied"} 2\n')
    expect(text).toContain('fluxgate_decision_duration_seconds_count 3\n')
    expect(text).toContain('fluxgate_rule_reloads_total{result="unchanged"} 1\n')
    expect(text).toContain('fluxgate_rules{rule_set="api"} 1\n')
  })

  it('can be OpenMetrics with exemplars', async () => {
    const gate = await gateWith({ metrics: true })
    await gate.check({ ...context, headers: { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` } })
    const families = parseOpenMetrics(await gate.metrics({ format: 'OPENMETRICS' }))
    expect(families.find(({ name }) => name === 'fluxgate_decisions')?.samples[0]).toMatchObject({
      labels: { rule_set: 'api', rule: 'r', result: 'allowed' },
      value: 1,
      exemplar: { labels: { trace_id: 'ab'.repeat(16) } },
    })
    const invalid = gate.metrics({ format: 'JSON' as never })
    await expect(invalid).rejects.toThrow('format must be PROMETHEUS or OPENMETRICS; received "JSON".')
  })

  it('are an error without the option, not zeros', async () => {
    const gate = await gateWith({})
    const error = { code: 'FLUXGATE_CONFIG_INVALID', message: expect.stringContaining('metrics: true') }
    await expect(gate.metrics()).rejects.toMatchObject(error)
    await expect(gate.collectMetrics()).rejects.toMatchObject(error)
    expect(() => collectGateMetrics(gate, new Registry())).toThrow(expect.objectContaining(error))
  })
})

describe('the collector for prom-client', () => {
  it('adds the same series to a registry, and removes them again', async () => {
    const gate = await gateWith({ metrics: true })
    await gate.check(context)
    const registry = new Registry()
    const remove = collectGateMetrics(gate, registry)
    const series = (text: string) =>
      text
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
        .sort()
    expect(series(await registry.metrics())).toEqual(series(await gate.metrics()))
    expect(await registry.metrics()).toContain('# TYPE fluxgate_decision_duration_seconds histogram')
    await gate.check(context)
    expect(await registry.metrics()).toContain('{rule_set="api",rule="r",result="denied"} 1')
    remove()
    expect(series(await registry.metrics())).toEqual([])
  })

  it('adds valid families with exemplars to a registry in the OpenMetrics format', async () => {
    const gate = await gateWith({ metrics: true })
    await gate.check({ ...context, headers: { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` } })
    const registry = new Registry()
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
    collectGateMetrics(gate, registry)
    new Counter({ name: 'own_total', help: 'A counter of the program.', registers: [registry] }).inc()
    const text = await registry.metrics()
    // prom-client does not write bounds in their canonical form.
    const families = parseOpenMetrics(text.replaceAll(/(?<=\{le=")[^"]*/g, canonical))
    const samples = families.flatMap((family) => family.samples)
    const exemplar = { labels: { trace_id: 'ab'.repeat(16), span_id: 'cd'.repeat(8) }, value: 1, at: 0 }
    expect(samples[0]).toEqual({
      name: 'fluxgate_decisions_total',
      labels: { rule_set: 'api', rule: 'r', result: 'allowed' },
      value: 1,
      exemplar,
    })
    expect(samples.some(({ name, exemplar }) => name.endsWith('_bucket') && exemplar !== undefined)).toBe(true)
    expect(samples.find(({ name }) => name === 'own_total')?.value).toBe(1)
  })

  it('rejects a second collector of the same metrics in a registry', async () => {
    const gate = await gateWith({ metrics: true })
    const registry = new Registry()
    collectGateMetrics(gate, registry)
    expect(() => collectGateMetrics(gate, registry)).toThrow(/already been registered/)
  })
})
