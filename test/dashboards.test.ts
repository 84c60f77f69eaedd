/** The Grafana dashboard and the Prometheus rules in `deploy` refer to metrics and labels that exist. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { metricFamilies } from '../src/telemetry/metrics.js'

const rulesFile = 'deploy/prometheus/fluxgate.rules.yaml'

interface PrometheusRule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
  readonly labels?: { readonly severity?: string }
  readonly annotations?: { readonly summary?: string; readonly description?: string }
}

const rules = (parse(readFileSync(rulesFile, 'utf8')) as { groups: { rules: PrometheusRule[] }[] }).groups.flatMap(
  (group) => group.rules,
)

interface Dashboard {
  readonly panels: readonly { id: number; title: string; targets: readonly { expr: string }[] }[]
  readonly templating: { readonly list: readonly { readonly query: string | { readonly query: string } }[] }
}

const dashboard = JSON.parse(readFileSync('deploy/grafana/fluxgate.json', 'utf8')) as Dashboard

const queries = [
  ...rules.map(({ alert, record, expr }) => [alert ?? record ?? '', expr] as const),
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ...dashboard.templating.list.flatMap(({ query }) =>
    typeof query === 'string' ? [] : [[query.query, query.query] as const],
  ),
]

/** The series of each metric, with their labels. Prometheus adds `instance` and `job`. */
const labelsOf = new Map<string, readonly string[]>(
  Object.entries(metricFamilies).flatMap(([name, { type, labels }]): [string, readonly string[]][] =>
    type === 'histogram'
      ? [
          [`${name}_bucket`, ['le', ...labels]],
          [`${name}_sum`, labels],
          [`${name}_count`, labels],
        ]
      : [[name, labels]],
  ),
)
const recorded = rules.flatMap(({ record }) => record ?? [])

describe('every query', () => {
  it.each(queries)('%s refers to existing metrics and labels', (_, expr) => {
    const names = [...expr.matchAll(/\bfluxgate[a-z0-9_:]*/g)].map(([name]) => name)
    expect(names.length).toBeGreaterThan(0)
    expect(names.filter((name) => !labelsOf.has(name) && !recorded.includes(name))).toEqual([])
    const known = new Set(['instance', 'job', ...names.flatMap((name) => labelsOf.get(name) ?? [])])
    const selected = [...expr.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label]) => label as string)
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) =>
      list.split(',').map((one) => one.trim()),
    )
    expect([...selected, ...grouped].filter((label) => !known.has(label))).toEqual([])
  })

  it('together covers every metric', () => {
    const used = queries.map(([, expr]) => expr).join('\n')
    const unused = Object.keys(metricFamilies).filter((name) => !used.includes(name))
    expect(unused).toEqual([])
  })
})

describe('the alerts', () => {
  it('have a severity, a summary and a description', () => {
    const alerts = rules.filter(({ alert }) => alert !== undefined)
    expect(alerts.length).toBeGreaterThan(5)
    for (const { alert, labels, annotations } of alerts)
      expect({ alert, ...labels, ...annotations }).toEqual({
        alert,
        severity: expect.stringMatching(/^(critical|warning|info)$/),
        summary: expect.any(String),
        description: expect.any(String),
      })
  })

  it('are valid for promtool, if it is installed', () => {
    const { status, stdout, stderr, error } = spawnSync('promtool', ['check', 'rules', rulesFile], { encoding: 'utf8' })
    if (error !== undefined) return console.log(`promtool is not installed: ${rulesFile} is not checked by it.`)
    expect(`${stdout}${stderr}`).toContain('SUCCESS')
    expect(status).toBe(0)
  })
})

it('panels of the dashboard have unique ids', () => {
  const ids = dashboard.panels.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})
