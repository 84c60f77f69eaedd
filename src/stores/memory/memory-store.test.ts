import { describe, expect, it } from 'vitest'
import { bucketStoreContract } from '../../testing/bucket-store-contract.js'
import { band, chargeOf, group } from '../../testing/fixtures.js'
import { manualClock } from '../../testing/manual-clock.js'
import { memoryStore } from './memory-store.js'

describe('memoryStore', () =>
  bucketStoreContract(it, (clock) => memoryStore({ clock }), { overrides: true, definitions: true, bans: true }))

describe('a memory store that is full of buckets that reject', () => {
  const rule = group('rule', [band({ capacity: 1 })], { hasOverrides: true })

  it.each([
    { maxKeys: 1, size: 1, what: 'does not grow for a refund to a key with a starting balance' },
    { maxKeys: 2, size: 2, what: 'takes such a refund where there is room' },
  ])('$what', async ({ maxKeys, size }) => {
    const clock = manualClock(0)
    const store = memoryStore({ maxKeys, clock })
    const balance = { permits: 0, atMs: 0 }
    const terms = { action: 'LIMIT', bands: [], expiresAtMs: undefined, note: undefined, balance } as const
    await store.overrides?.put({ ruleSetId: 'set', ruleId: 'rule', key: 'balanced', isRange: false }, terms)
    await store.charge([chargeOf(rule, 'rejecting')], false)
    await store.refund([{ group: rule, key: 'balanced', permits: 1 }])
    expect(store.size).toBe(size)
  })
})
