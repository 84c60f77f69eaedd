import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { collectGateMetrics } from '../../../src/prometheus.js'
import { manualClock } from '../../../src/testing/manual-clock.js'

const rules = { id: 'api', rules: [{ id: 'r', bands: [{ capacity: 1, window: '1m' }] }] }

async function gateWith(options: { metrics?: boolean }) {
  const gate = await createFluxGate({ rules, clock: manualClock(0), ...options })
  onTestFinished(() => gate.close())
  return gate
}

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

  it('rejects a second collector of the same metrics in a registry', async () => {
    const gate = await gateWith({ metrics: true })
    const registry = new Registry()
    collectGateMetrics(gate, registry)
    expect(() => collectGateMetrics(gate, registry)).toThrow(/already been registered/)
  })
})
