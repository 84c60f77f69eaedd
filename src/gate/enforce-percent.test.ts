import { describe, expect, it } from 'vitest'
import type { BucketStore } from '../core/bucket-store.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import { manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'
import { createLimiter } from './limiter/create-limiter.js'

const keys = Array.from({ length: 60 }, (_, i) => `user-${i}`)
const rule = { enforcePercent: 50, capacity: 1, window: '1m' }

describe('a rule that enforces for half of its keys', () => {
  it('rejects the same keys in consume, consumeSync and peek', async () => {
    const limiter = createLimiter({ ...rule, clock: manualClock(0) })
    const rejected: string[] = []
    for (const key of keys) {
      await limiter.consume(key)
      const { allowed, bands } = await limiter.consume(key)
      expect(bands[0]).toMatchObject({ allowed: false, shadow: allowed })
      expect((await limiter.peek(key)).allowed).toBe(allowed)
      expect(limiter.consumeSync(key).allowed).toBe(allowed)
      if (!allowed) rejected.push(key)
    }
    expect(rejected.length).toBeGreaterThan(15)
    expect(rejected.length).toBeLessThan(45)
  })

  it('rejects the same keys in a gate, while its store fails too, and reports the others as shadow', async () => {
    const clock = manualClock(1_800_000_000_000)
    const memory = memoryStore({ clock })
    let isFailing = false
    const store: BucketStore = {
      async charge(charges, peek) {
        if (isFailing) throw new Error('connection refused')
        return memory.charge(charges, peek)
      },
      refund: (refunds) => memory.refund(refunds),
      reset: (group, key) => memory.reset(group, key),
      close: () => memory.close(),
    }
    const rules = {
      id: 'api',
      rules: [
        { id: 'users', limitScope: 'USER_ID' as const, enforcePercent: 50, bands: [{ capacity: 1, window: '1m' }] },
      ],
    }
    const gate = await createFluxGate({ rules, store, clock })
    const rejectedKeys = async () => {
      const rejected: string[] = []
      for (const userId of keys) {
        await gate.check({ userId })
        if (!(await gate.check({ userId })).allowed) rejected.push(userId)
      }
      return rejected
    }
    const rejected = await rejectedKeys()
    for (const key of keys)
      expect(await gate.look({ ruleSetId: 'api', ruleId: 'users', key })).toMatchObject([
        { shadow: !rejected.includes(key) },
      ])
    isFailing = true
    expect(await rejectedKeys()).toEqual(rejected)
    expect(rejected.length).toBeGreaterThan(15)
    expect(rejected.length).toBeLessThan(45)
    await gate.close()
  })
})
