// @ts-check
/** 8000 keys of 15 000 bytes each, through everything that remembers keys: 120 MB, in a heap of 64 MiB. */
import { createFluxGate } from '../../dist/index.js'
import { RecentIdentities } from '../../dist/stores/redis/overrides/recent-identities.js'
import { DecisionRecorder } from '../../dist/telemetry/decision-recorder.js'
import { showKey } from '../../dist/telemetry/key-digest.js'
import { LocalStatistics } from '../../dist/telemetry/statistics/local-statistics.js'

const bands = [{ capacity: 5, window: '1h' }]
const gate = await createFluxGate({
  rules: {
    id: 'api',
    rules: [
      { id: 'key', limitScope: 'API_KEY', bands },
      // A key that is a short piece of a long path.
      { id: 'path', path: '/of/{id}/**', limitScope: 'CUSTOM', keyField: 'path.id', bands },
    ],
  },
})
const recorder = new DecisionRecorder({ now: () => 0 })
const statistics = new LocalStatistics({ recorder, clock: { now: () => 0 }, showKey: showKey(false) })
const recent = new RecentIdentities(50_000)
const group = { ruleSetId: 'api', ruleId: 'key', generation: '1', permits: 1, bands: [] }
for (let i = 0; i < 8_000; i++) {
  const apiKey = Buffer.alloc(15_000, `${i}-`).toString('latin1')
  const context = { apiKey, path: `/of/a-longer-identity-${i}/${'x'.repeat(15_000)}` }
  recorder.decided(await gate.check(context), context, -1)
  if (i % 500 === 0) recorder.secondPassed()
  recent.set(group, apiKey, i)
}
const { length } = await statistics.keys({ prefix: '', limit: 10_000 })
console.log(JSON.stringify({ length }))
await gate.close()
