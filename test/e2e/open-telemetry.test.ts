/** Programs with an OpenTelemetry SDK that is loaded with `--import`, and processes without one. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { tempWorkspace } from './running-program.js'

/** Writes spans and metrics to files as lines of JSON. */
const setup = `
import { appendFileSync } from 'node:fs'
import { createRequire } from 'node:module'
const require = createRequire(${JSON.stringify(import.meta.url)})
const { metrics } = require('@opentelemetry/api')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics')
const { NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node')
const write = (file, value) => appendFileSync(new URL(file, import.meta.url), JSON.stringify(value) + '\\n')
const spans = {
  export(all, done) {
    for (const { name, events, attributes } of all) write('spans.jsonl', { pid: process.pid, path: attributes['http.target'], events })
    done({ code: 0 })
  },
  shutdown: async () => {},
}
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).register()
const exporter = {
  export({ scopeMetrics }, done) {
    for (const { descriptor, dataPoints } of scopeMetrics.flatMap(({ metrics }) => metrics))
      for (const { attributes, value } of dataPoints) write('metrics.jsonl', { pid: process.pid, name: descriptor.name, attributes, value })
    done({ code: 0 })
  },
  forceFlush: async () => {},
  shutdown: async () => {},
  selectAggregationTemporality: () => 1,
}
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 200, exportTimeoutMillis: 200 })
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
registerInstrumentations({ instrumentations: [new HttpInstrumentation()] })
require('node:http')
`

interface ExportedSpan {
  readonly events: readonly { readonly name: string; readonly attributes: Record<string, unknown> }[]
}

interface ExportedSample {
  readonly pid: number
  readonly name: string
  readonly attributes: Record<string, unknown>
  readonly value: number
}

it('reports the decisions of a server with two workers, in the spans of its requests and as metrics', async () => {
  const workspace = tempWorkspace()
  const rules = { id: 'api', rules: [{ id: 'per-ip', bands: [{ capacity: 1000, window: '1h' }] }] }
  workspace.write('rules.yaml', rules)
  workspace.write('otel.mjs', setup)
  const linesOf = <T>(file: string): T[] => {
    const path = workspace.file(file)
    if (!existsSync(path)) return []
    const whole = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return whole.map((line) => JSON.parse(line) as T)
  }
  const env = { NODE_OPTIONS: `--import ${pathToFileURL(workspace.file('otel.mjs'))}` }
  const running = await workspace.start(['serve', '--port', '0', '--workers', '2', '--rules', 'rules.yaml'], env)
  for (let i = 0; i < 10; i++)
    await fetch(`${running.api}/api/ratelimit/check`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ clientIp: `192.0.2.${i}`, path: '/' }),
    })
  const events = () => linesOf<ExportedSpan>('spans.jsonl').flatMap((span) => span.events)
  await running.until('the spans are exported', () => events().length === 10)
  for (const { name, attributes } of events())
    expect({ name, rule: attributes['fluxgate.rule'], outcome: attributes['fluxgate.outcome'] }).toEqual({
      name: 'fluxgate.decision',
      rule: 'per-ip',
      outcome: 'allowed',
    })
  const counted = () => {
    const latest = new Map<number, number>()
    for (const { pid, name, attributes, value } of linesOf<ExportedSample>('metrics.jsonl'))
      if (name === 'fluxgate.decisions' && attributes.result === 'allowed') latest.set(pid, value)
    return [...latest.values()].reduce((sum, value) => sum + value, 0)
  }
  await running.until('the metrics are exported', () => counted() === 10)
  running.process.kill('SIGTERM')
  expect(await running.ended).toBe(0)
})

it('does not load the API without an SDK, although it is installed', () => {
  const program = `
    import { createRequire } from 'node:module'
    import { createFluxGate, createLimiter } from './dist/bundle/index.js'
    import { HttpHandler } from './dist/bundle/handlers.js'
    import { rateLimit } from './dist/bundle/express.js'
    const require = createRequire(import.meta.url)
    require.resolve('@opentelemetry/api')
    const gate = await createFluxGate({ rules: { id: 'api', rules: [{ id: 'r', bands: [{ capacity: 1, window: '1m' }] }] } })
    await gate.check({ clientIp: '192.0.2.1', path: '/' })
    createLimiter({ capacity: 1, window: '1m' }).consumeSync('a')
    rateLimit({ capacity: 1, window: '1m' })
    await new HttpHandler({ url: 'http://127.0.0.1:1' }).close()
    await gate.close()
    const loaded = Object.keys(require.cache).filter((file) => file.includes('opentelemetry'))
    console.log(JSON.stringify({ loaded, isRegistered: Symbol.for('opentelemetry.js.api.1') in globalThis }))
  `
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({ loaded: [], isRegistered: false })
})
