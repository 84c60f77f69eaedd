import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../config/config.js'
import { manualClock } from '../testing/index.js'
import { gateOptions, readGateOptions } from './configured-options.js'
import { createFluxGate } from './create-flux-gate.js'

const directory = mkdtempSync(join(tmpdir(), 'fluxgate-config-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function write(text: string, name = 'fluxgate.yaml'): string {
  writeFileSync(join(directory, name), text)
  return name
}

const load = (text: string) => loadConfig({ path: write(text), env: {}, cwd: directory })

describe('gate options', () => {
  it('are derived from the configuration', async () => {
    const options = gateOptions(await load('ratelimit: { defaultRuleSetId: api }\nreload: { strategy: NONE }'))
    expect(options).toMatchObject({
      rules: { type: 'file', path: join(directory, 'rules.yaml') },
      defaultRuleSetId: 'api',
      missingRuleBehavior: 'ALLOW',
      ipv6Prefix: 56,
      onStoreFailure: 'LOCAL',
      localShare: 1,
      reload: {
        strategy: 'NONE',
        pollingIntervalMs: 30_000,
        resetBucketsOnReload: true,
        channel: 'fluxgate:rule-reload',
      },
      waitForRefill: { maxWaitMs: 5_000, maxConcurrentWaits: 100 },
    })
  })

  it('in code override single settings of the file', async () => {
    write('reload: { strategy: NONE, pollingInterval: 1m }\nratelimit: { ipv6Prefix: 48, defaultRuleSetId: api }')
    const config = join(directory, 'fluxgate.yaml')
    const options = await readGateOptions({ config, reload: { strategy: 'POLLING' }, rules: { id: 'x', rules: [] } })
    expect(options.reload).toMatchObject({ strategy: 'POLLING', pollingIntervalMs: 60_000, resetBucketsOnReload: true })
    expect(options).toMatchObject({ rules: { id: 'x', rules: [] }, ipv6Prefix: 48, defaultRuleSetId: 'api' })
  })

  it('create a gate that uses the given clock', async () => {
    const bands = '[{ capacity: 1, window: 1m }]'
    write(`ruleSets: [{ id: a, rules: [] }, { id: b, rules: [{ id: one, bands: ${bands} }] }]`, 'rules.yaml')
    write('ratelimit: { default-rule-set-id: b }\nreload: { strategy: NONE }\nstore: { maxKeys: 10 }')
    const clock = manualClock(0)
    const gate = await createFluxGate({ config: join(directory, 'fluxgate.yaml'), clock })
    const ask = async () => (await gate.check({ clientIp: '192.0.2.1' })).allowed
    expect([await ask(), await ask()]).toEqual([true, false])
    clock.advance(60_000)
    expect(await ask()).toBe(true)
    await gate.close()
  })

  it('are unchanged without a configuration file', async () => {
    const options = { rules: 'rules.yaml' }
    expect(await readGateOptions(options)).toBe(options)
  })
})
