import { expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../gate/create-flux-gate.js'
import { manualClock } from '../../../testing/manual-clock.js'
import { plainText } from '../../output/output.js'
import { explanationLines } from './report.js'

it('says that the key is banned, with the end of the ban', async () => {
  const clock = manualClock(1_800_000_000_000)
  const band = { label: 'minute', capacity: 2, window: '1m' }
  const rules = [{ id: 'login', ban: { after: 1, within: '1m', for: '5m' }, bands: [band] }]
  const gate = await createFluxGate({ rules: { id: 'api', rules }, clock })
  onTestFinished(() => gate.close())
  const lines = async () => explanationLines(await gate.explain({ clientIp: '203.0.113.7' }), clock.now(), plainText)
  await gate.check({ clientIp: '203.0.113.7' }, { permits: 2 })
  expect((await lines())[0]).toBe('rejected by login · minute: 2 of 2 used, retry in 30s')
  await gate.check({ clientIp: '203.0.113.7' })
  expect((await lines())[0]).toBe('rejected by login · minute: the key is banned, retry in 5m')
})

it('shows characters of a key that would control the terminal as question marks', async () => {
  const rules = [{ id: 'per-user', limitScope: 'USER_ID' as const, bands: [{ capacity: 2, window: '1m' }] }]
  const gate = await createFluxGate({ rules: { id: 'api', rules } })
  onTestFinished(() => gate.close())
  const lines = explanationLines(await gate.explain({ userId: 'ann\u001b[2J\u009b1m' }), Date.now(), plainText)
  expect(lines.join('\n')).toContain('key ann?[2J?1m')
})
