/** `fluxgate rules import` as a process. */
import { writeFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { commandLine } from './command-line.js'

const config = `domain: edge
descriptors:
  - key: tenant
    detailed_metric: true
    rate_limit: { unit: minute, requests_per_unit: 10 }
`
const wildcard = `domain: files
descriptors:
  - key: path
    value: /files/*
    rate_limit: { unit: second, requests_per_unit: 1 }
`

function shell() {
  const line = commandLine()
  onTestFinished(() => line.remove())
  writeFileSync(line.file('a.yaml'), config)
  writeFileSync(line.file('b.yaml'), wildcard)
  return line
}

const tenantRule = {
  id: 'tenant',
  when: { 'attributes.envoy.descriptor': 'tenant' },
  limitScope: 'CUSTOM',
  keyField: 'attributes.tenant',
  algorithm: 'FIXED_WINDOW',
  bands: [{ label: 'minute', capacity: 10, windowMs: 60_000 }],
}

it('prints valid rules, and notes what is left out', () => {
  const { fluxgate } = shell()
  const { status, stdout, stderr } = fluxgate(['rules', 'import', '--from', 'envoy', 'a.yaml'])
  expect([status, stderr]).toEqual([
    0,
    'note: a.yaml: descriptors[0].detailed_metric: has no effect: it concerns metrics only (line 4, column 22)\n',
  ])
  expect(parse(stdout)).toEqual({ ruleSets: [{ id: 'edge', strategy: 'first', rules: [tenantRule] }] })
  expect(fluxgate(['rules', 'validate', '-'], { input: stdout }).status).toBe(0)
  const json = fluxgate(['rules', 'import', '--from', 'envoy', '--json', '-'], { input: config })
  expect(JSON.parse(json.stdout)).toEqual(parse(stdout))
})

it('reports what has no equivalent with line and column, and prints nothing', () => {
  const { fluxgate } = shell()
  const { status, stdout, stderr } = fluxgate(['rules', 'import', '--from', 'envoy', 'a.yaml', 'b.yaml'])
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toContain(
    'error: b.yaml: descriptors[0].value: has no equivalent: rules compare whole values, not the prefix "/files/*". Name each value in a descriptor of its own, or omit the value to limit each value separately (line 4, column 12)\n',
  )
  const twice = fluxgate(['rules', 'import', '--from', 'envoy', 'a.yaml', 'a.yaml'])
  expect([twice.status, twice.stderr]).toEqual([1, expect.stringContaining('domain: is the domain of an earlier file')])
  expect(fluxgate(['rules', 'import', '--from', 'envoy', 'missing.yaml']).status).toBe(2)
})
