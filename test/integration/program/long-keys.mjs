// @ts-check
/** 8000 keys of 15 000 bytes each, through everything that stores keys: 120 MB, in a heap of 64 MiB. */

import { createFluxGate } from '../../../dist/index.js'
import { CachedRejections } from '../../../dist/stores/redis/cached-rejections.js'
import { RecentKeys } from '../../../dist/stores/redis/overrides/recent-keys.js'
import { DecisionRecorder } from '../../../dist/telemetry/decision-recorder.js'
import { showKey } from '../../../dist/telemetry/key-digest.js'
import { LocalStatistics } from '../../../dist/telemetry/statistics/local-statistics.js'
import { PendingCounts } from '../../../dist/telemetry/statistics/pending-counts.js'
import { band, chargeOf, group, second } from '../../../dist/testing/fixtures.js'
import { manualClock } from '../../../dist/testing/manual-clock.js'

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
const recent = new RecentKeys(50_000)
const rule = group('key', [band({ windowTicks: 60 * second })])
const known = new CachedRejections({ clock: manualClock(0) })
const rejection = { allowed: false, delay: 0, retryAfter: 30 * second, remaining: 0, resetAt: 60 * second }
const pending = new PendingCounts(recorder, showKey(false))
for (let i = 0; i < 8_000; i++) {
  const apiKey = Buffer.alloc(15_000, `${i}-`).toString('latin1')
  const context = { apiKey, path: `/of/a-longer-identity-${i}/${'x'.repeat(15_000)}` }
  const decision = await gate.check(context)
  recorder.decided(decision, context, -1)
  if (i % 500 === 0) recorder.secondPassed()
  recent.set(rule, apiKey, i)
  known.record([chargeOf(rule, apiKey)], { granted: false, now: 0, bands: [rejection] }, [[0, 0, 0, 60 * second]], 0)
  // It stores at most 2000 keys.
  if (i < 2_000) pending.add({ decision: { ...decision, key: apiKey.repeat(4) }, context, at: 0, weight: 1 })
}
const { length } = await statistics.keys({ prefix: '', limit: 10_000 })
console.log(JSON.stringify({ length }))
await gate.close()
