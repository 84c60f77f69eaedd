import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { parseDocument } from '../rules/document/document.js'
import { noIssues } from '../validation/issues.js'
import { configSchema } from './json-schema.js'
import { readSettings } from './read-settings.js'
import { settings } from './settings.js'

const page = readFileSync(new URL('../../docs/reference/configuration.md', import.meta.url), 'utf8')
const published = JSON.parse(
  readFileSync(new URL('../../docs/reference/fluxgate.schema.json', import.meta.url), 'utf8'),
)
const isValid = new Ajv({ allErrors: true, allowUnionTypes: true, strict: true }).compile(published)
const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, example = '']) => [example] as const)

describe('JSON Schema of fluxgate.yaml', () => {
  it('is up to date (regenerate with `node scripts/config-schema.mjs`)', () => {
    const meanings = new Map(
      Object.entries(published.definitions as Record<string, { description: string }>).map(
        ([place, { description }]) => [place, description],
      ),
    )
    expect(published).toEqual(configSchema(meanings))
    for (const [place, meaning] of meanings) {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${place}\` |`))
      expect(row?.endsWith(`| ${meaning} |`), place).toBe(true)
    }
  })

  it.each(examples)('accepts the example of the reference: %s', (example) => {
    const document = parseDocument(example, 'yaml')
    const accepted = isValid(JSON.parse(JSON.stringify(document)))
    expect(isValid.errors ?? []).toEqual([])
    expect(accepted).toBe(true)
  })

  it('accepts every default, in both spellings', () => {
    const defaults = Object.fromEntries(
      Object.entries(settings).map(([section, members]) => [
        section,
        Object.fromEntries(
          Object.entries(members).flatMap(([key, { defaultValue }]) =>
            defaultValue === undefined ? [] : [[key, defaultValue]],
          ),
        ),
      ]),
    )
    expect(isValid(defaults)).toBe(true)
    expect(isValid({ 'wait-for-refill': { 'max-wait-time': '1s' } })).toBe(true)
  })

  it.each([
    { gateway: { prot: 80 } },
    { server: { port: '80' } },
    { server: { port: 65_536 } },
    { reload: { strategy: 'SOMETIMES' } },
    { store: { leaseShare: 0 } },
    { rules: { uri: 'http://example.org' } },
    { waitForRefill: { maxWaitTime: 'soon' } },
    { color: {} },
  ])('rejects %j, as the program does', (document) => {
    const issues = noIssues()
    readSettings(document, {}, issues)
    expect(issues.count).toBeGreaterThan(0)
    expect(isValid(document)).toBe(false)
  })
})
