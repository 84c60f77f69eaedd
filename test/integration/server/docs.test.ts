/** The requests in the guide are sent with curl, with the rules that it shows, and the responses must match. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { temporaryRules } from '../../fixtures/temporary-rules.js'
import { serverWith } from '../../fixtures/test-server.js'

const shell = promisify(execFile)
const page = readFileSync('docs/guide/server.md', 'utf8')

it('the requests of the guide return the responses that it shows', async () => {
  const rules = temporaryRules()
  const [, text = ''] = /^```yaml rules\.yaml\n([\s\S]*?)^```$/m.exec(page) ?? []
  for (const set of parse(text).ruleSets) await rules.putRuleSet(set, { by: 'ann' })
  const { url } = await serverWith({ rules, gateOptions: { clock: manualClock(1_800_000_000_000) } })
  const shown = [...page.matchAll(/^```console\n\$ (.+)\n([\s\S]*?)^```$/gm)]
  expect(shown.length).toBeGreaterThan(3)
  for (const [, command = '', output = ''] of shown) {
    const { stdout } = await shell('sh', ['-c', command.replaceAll('http://127.0.0.1:8090', url)])
    expect(stdout.trimEnd(), command).toBe(output.trimEnd())
  }
})
