import { describe, expect, it } from 'vitest'
import type { BucketGroup } from '../core/bucket-store.js'
import { bucketStoreContract } from '../testing/bucket-store-contract.js'
import { manualClock } from '../testing/manual-clock.js'
import { memoryStore } from './memory.js'

describe('memoryStore', () => bucketStoreContract(it, (clock) => memoryStore({ clock }), { overrides: true }))

describe('a memory store that is full of buckets that refuse', () => {
  const rule: BucketGroup = {
    ruleSetId: 'set',
    ruleId: 'rule',
    generation: '1',
    permits: 1,
    bands: [
      {
        label: 'band',
        algorithm: 'TOKEN_BUCKET',
        refill: 'STEADY',
        capacity: 1,
        refillTokens: 1,
        windowTicks: 1_000_000,
      },
    ],
    hasOverrides: true,
  }
  const demand = { group: rule, permits: 1, patience: 0, policy: 'REJECT', shadow: false } as const

  it.each([
    { maxKeys: 1, size: 1, what: 'does not grow for a refund to somebody with a starting balance' },
    { maxKeys: 2, size: 2, what: 'takes such a refund where there is room' },
  ])('$what', async ({ maxKeys, size }) => {
    const clock = manualClock(0)
    const store = memoryStore({ maxKeys, clock })
    const balance = { permits: 0, atMs: 0 }
    const terms = { action: 'LIMIT', bands: [], expiresAtMs: undefined, note: undefined, balance } as const
    await store.overrides?.put({ ruleSetId: 'set', ruleId: 'rule', key: 'begun', isRange: false }, terms)
    await store.charge([{ ...demand, key: 'refusing' }], false)
    await store.refund([{ group: rule, key: 'begun', permits: 1 }])
    expect(store.size).toBe(size)
  })
})
