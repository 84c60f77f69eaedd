import { expect, it, onTestFinished } from 'vitest'
import type { JointCheck } from '../../../src/core/decision/joint/joint-check.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { openGate } from '../../../src/gate/create-flux-gate.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const rules: RuleSetInput = {
  id: 'api',
  rules: [
    {
      id: 'tenants',
      when: { 'attributes.kind': ['tenant', 'both'] },
      limitScope: 'CUSTOM',
      keyField: 'attributes.name',
      algorithm: 'FIXED_WINDOW',
      bands: [{ capacity: 6, window: '1m' }],
    },
    {
      id: 'tokens',
      when: { 'attributes.kind': ['tokens', 'both'] },
      limitScope: 'CUSTOM',
      keyField: 'attributes.name',
      bands: [
        { capacity: 5, window: '10s' },
        { capacity: 20, window: '1m' },
      ],
    },
    {
      id: 'shadow',
      when: { 'attributes.kind': 'both' },
      limitScope: 'GLOBAL',
      mode: 'SHADOW',
      algorithm: 'SLIDING_WINDOW_LOG',
      bands: [{ capacity: 3, window: '10s' }],
    },
  ],
}

it('decides several contexts in Redis as in memory, over random histories', async () => {
  const seed = randomSeed()
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const clock = manualClock(1_800_000_000_000)
  const store = redisStore(sharedRedis().uri, { prefix: freshPrefix(), clock, cachedRejections: random() < 0.5 })
  const gates = await Promise.all([openGate({ rules, clock, store }), openGate({ rules, clock })])
  onTestFinished(async () => {
    for (const gate of gates) await gate.close()
    await store.close()
  })
  const randomCheck = (): JointCheck => ({
    context: { attributes: { kind: pick(['tenant', 'tokens', 'both', 'none']), name: pick(['a', 'b']) } },
    permits: pick([0, 1, 1, 1, 2, 4, -1]),
    ...(random() < 0.2 && { limit: { capacity: pick([0, 1, 4, 9]), windowMs: pick([1_000, 60_000]), key: 'own' } }),
  })
  for (let i = 0; i < 150; i++) {
    const checks = Array.from({ length: 1 + Math.floor(random() * 4) }, randomCheck)
    const [redis, memory] = await Promise.all(gates.map((gate) => gate.decideTogether(checks)))
    expect(redis, `decision ${i} of seed ${seed}`).toEqual(memory)
    clock.advance(pick([0, 0, 1, 250, 3_000]))
  }
})

it('needs one call for a decision about several contexts', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const gate = await openGate({ rules, store: redis.uri })
  onTestFinished(() => gate.close())
  const checks = ['tenant', 'tokens', 'both', 'tenant'].map((kind, i) => ({
    context: { attributes: { kind, name: `n${i}` } },
  }))
  await gate.decideTogether(checks)
  const calls = await countCalls(redis, ['evalsha', 'eval'], async () => {
    for (let i = 0; i < 5; i++) await gate.decideTogether(checks)
  })
  expect(calls).toEqual({ evalsha: 5, eval: 0 })
})
