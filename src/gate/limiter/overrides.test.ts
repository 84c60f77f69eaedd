import { expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../core/bucket-store.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createLimiter, type LimiterOptions } from './create-limiter.js'

const start = 1_800_000_000_000

function limiterOf(options: Partial<LimiterOptions> = {}) {
  const clock = manualClock(start)
  const limiter = createLimiter({ capacity: 2, window: '1m', overrides: true, clock, ...options } as LimiterOptions)
  onTestFinished(() => limiter.close())
  return { limiter, clock }
}

it('a key can have other bands, no limit or no access', async () => {
  const { limiter } = limiterOf()
  const { overrides } = limiter
  expect(await overrides.put({ key: 'ann', action: 'LIMIT', bands: [{ capacity: 5, window: '1m' }] })).toEqual({
    created: true,
  })
  await overrides.put({ key: 'bob', action: 'ALLOW' })
  await overrides.put({ key: 'eve', action: 'DENY', note: 'abuse' })
  expect(limiter.consumeSync('ann')).toMatchObject({ limit: 5, remaining: 4 })
  expect(limiter.consumeSync('bob', 7)).toMatchObject({ allowed: true, reason: 'ALLOW_LISTED' })
  expect(limiter.consumeSync('eve')).toMatchObject({ allowed: false, reason: 'DENY_LISTED' })
  expect(limiter.consumeSync('cem')).toMatchObject({ limit: 2, remaining: 1 })
  expect(await overrides.put({ key: 'ann', action: 'DENY' })).toEqual({ created: false })
  expect(limiter.consumeSync('ann').allowed).toBe(false)
})

it('overrides are listed, read, deleted and expire', async () => {
  const { limiter, clock } = limiterOf()
  const { overrides } = limiter
  const expiresAt = new Date(start + 5_000).toISOString()
  for (const key of ['user:1', 'user:2', 'team:1']) await overrides.put({ key, action: 'ALLOW', expiresAt })
  const { items, cursor } = await overrides.list({ prefix: 'user:', limit: 1 })
  expect(items).toEqual([{ key: 'user:1', action: 'ALLOW', expiresAt }])
  expect((await overrides.list({ prefix: 'user:', cursor: cursor ?? '' })).items).toHaveLength(1)
  expect(await overrides.get('team:1')).toMatchObject({ action: 'ALLOW' })
  expect([await overrides.delete('team:1'), await overrides.delete('team:1')]).toEqual([true, false])
  clock.advance(5_000)
  expect(await overrides.get('user:1')).toBeUndefined()
  expect(limiter.consumeSync('user:1')).toMatchObject({ reason: 'ALLOWED', remaining: 1 })
})

it('keys are plain text, and addresses with limitScope IP', async () => {
  const { limiter } = limiterOf()
  await limiter.overrides.put({ key: 'reports/2026', action: 'DENY' })
  expect(limiter.consumeSync('reports/2026').allowed).toBe(false)
  const { limiter: byAddress } = limiterOf({ limitScope: 'IP' })
  await byAddress.overrides.put({ key: '10.0.0.0/8', action: 'DENY' })
  expect([byAddress.consumeSync('10.1.2.3').allowed, byAddress.consumeSync('11.1.2.3').allowed]).toEqual([false, true])
  await expect(byAddress.overrides.put({ key: '10.0.0.0/33', action: 'DENY' })).rejects.toMatchObject({
    code: 'FLUXGATE_OVERRIDE_INVALID',
  })
})

it('overrides that could have no effect are errors', async () => {
  const { limiter } = limiterOf({ overrides: false })
  await expect(limiter.overrides.put({ key: 'ann', action: 'DENY' })).rejects.toMatchObject({
    code: 'FLUXGATE_ARGUMENT_INVALID',
    message: 'The limiter ignores overrides. Set overrides: true in its options.',
  })
  const memory = memoryStore()
  const store: BucketStore = {
    charge: (charges, peek) => memory.charge(charges, peek),
    refund: (refunds) => memory.refund(refunds),
    reset: (group, key) => memory.reset(group, key),
    close: () => memory.close(),
  }
  await expect(limiterOf({ store }).limiter.overrides.put({ key: 'ann', action: 'DENY' })).rejects.toThrow(
    'The store keeps no overrides. Use memoryStore or redisStore.',
  )
})

it('a closed limiter has no overrides', async () => {
  const { limiter } = limiterOf()
  await limiter.close()
  await expect(limiter.overrides.get('ann')).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
})
