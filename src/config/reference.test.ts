import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { parseDocument } from '../rules/document/document.js'
import { noIssues } from '../validation/issues.js'
import type { Setting } from '../validation/setting.js'
import { environmentName } from '../validation/setting-names.js'
import { readSettings } from './read-settings.js'
import { settings } from './settings.js'

const page = readFileSync(new URL('../../docs/reference/configuration.md', import.meta.url), 'utf8')
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )

it('documents exactly the existing settings with variable, allowed values and default', () => {
  const documented = rows.filter((row) => row.length > 2).map((row) => row.slice(0, 4))
  const known = Object.entries<Readonly<Record<string, Setting<unknown>>>>(settings).flatMap(([section, members]) =>
    Object.entries(members).map(([key, { kind, defaultValue, variable }]) => {
      const path = `${section}.${key}`
      return [
        `\`${path}\``,
        [environmentName(path), ...(variable ? [variable] : [])].map((name) => `\`${name}\``).join(', '),
        kind.allowed,
        defaultValue === undefined ? '' : `\`${defaultValue}\``,
      ]
    }),
  )
  expect(documented).toEqual(known)
})

it('documents an example that contains the defaults', () => {
  const [, example = ''] = /```yaml\n(.*?)```/s.exec(page) ?? []
  const issues = noIssues()
  const written = readSettings(parseDocument(example, 'yaml'), {}, issues)
  const defaults = readSettings(undefined, {}, issues)
  expect(issues.kept).toEqual([])
  expect(written).toEqual({ ...defaults, ratelimit: { ...defaults.ratelimit, defaultRuleSetId: 'api' } })
})
