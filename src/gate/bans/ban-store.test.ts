import { describe, expect, it, onTestFinished } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { createFluxGate } from '../create-flux-gate.js'
import { createLimiter } from '../limiter/create-limiter.js'

const start = 1_800_000_000_000
const ban = { after: 2, within: '1m', for: '15m', factor: 2, max: '1h' }
const bands = [{ capacity: 1, window: '10s' }]

async function gateWithBans() {
  const clock = manualClock(start)
  const rules = {
    id: 'api',
    rules: [
      { id: 'login', limitScope: 'IP' as const, ban, bands },
      { id: 'users', limitScope: 'USER_ID' as const, path: '/users', bands },
    ],
  }
  const gate = await createFluxGate({ rules, clock })
  onTestFinished(() => gate.close())
  const { bans } = gate
  if (bans === undefined) throw new Error('The gate has no bans.')
  return { clock, gate, bans }
}

describe('gate.bans', () => {
  it('uses the length of the rule by default, and the form of the key that the rule counts', async () => {
    const { bans } = await gateWithBans()
    const { ban: set, created } = await bans.set('api', 'login', '::ffff:203.0.113.7')
    expect([created, set.key, set.retryAfterMs]).toEqual([true, '203.0.113.7', 900_000])
    expect(await bans.get('api', 'login', '203.0.113.7')).toEqual(set)
  })

  it.each([
    ['203.0.113.7', { for: '61m' }, "for: must be at most 3600s, which is max of the rule's ban; received 3660s"],
    ['203.0.113.7', { for: 0 }, 'for: must be a duration'],
    ['203.0.113.7', { for: -1 }, 'for: must be a duration'],
    ['203.0.113.7', { until: start }, 'until: must be in the future, and at most 3600s from now'],
    ['203.0.113.7', { until: start + 3_600_001 }, 'until: must be in the future, and at most 3600s from now'],
    ['203.0.113.7', { for: '1m', until: start + 1 }, 'until: must not be combined with for'],
    ['203.0.113.7', 'now', 'must be a ban: { key, for, until }'],
    ['203.0.113.0/24', {}, 'key: must be a single address'],
    ['', {}, 'key: must be'],
    ['k'.repeat(1_025), {}, 'key: must be'],
    ['\ud800', {}, 'key: must be valid Unicode'],
    [7, {}, 'key: must be'],
  ])('rejects a ban of %j with %j', async (key, input, message) => {
    const { bans } = await gateWithBans()
    await expect(bans.set('api', 'login', key as string, input as object)).rejects.toMatchObject({
      code: 'FLUXGATE_BAN_INVALID',
      message: expect.stringContaining(message),
    })
  })

  it('rejects a ban by a rule without a ban, and names the alternative', async () => {
    const { bans } = await gateWithBans()
    await expect(bans.set('api', 'users', 'ann')).rejects.toMatchObject({
      code: 'FLUXGATE_BAN_INVALID',
      message: expect.stringContaining('rule users has none. Add ban to the rule, or use an override with action DENY'),
    })
    expect(await bans.list('api', 'users')).toEqual({ items: [], cursor: null })
    expect([await bans.get('api', 'users', 'ann'), await bans.lift('api', 'users', 'ann')]).toEqual([undefined, false])
  })

  it('rejects unknown rules and invalid queries', async () => {
    const { bans } = await gateWithBans()
    const unknown = { code: 'FLUXGATE_ARGUMENT_INVALID', message: 'Rule "x" does not exist in rule set "api".' }
    await expect(bans.set('api', 'x', 'a')).rejects.toMatchObject(unknown)
    await expect(bans.list('api', 'x')).rejects.toMatchObject(unknown)
    await expect(bans.list('api', 'login', { limit: 0 })).rejects.toMatchObject({
      message: 'limit must be an integer of at least 1; received 0.',
    })
    await expect(bans.get('api', 'login', '')).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
  })

  it('keeps the bans of a rule whose bands change, and ends them with the clock', async () => {
    const { clock, gate, bans } = await gateWithBans()
    await bans.set('api', 'login', '203.0.113.7', { until: new Date(start + 60_000).toISOString() })
    clock.advance(59_999)
    expect(await gate.check({ clientIp: '203.0.113.7' })).toMatchObject({ reason: 'BANNED', retryAfterMs: 1 })
    clock.advance(1)
    expect((await gate.check({ clientIp: '203.0.113.7' })).allowed).toBe(true)
  })
})

describe('limiter.bans', () => {
  it('lists, sets and lifts bans', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1, window: '10s', ban, clock })
    onTestFinished(() => limiter.close())
    for (let i = 0; i < 3; i++) limiter.consumeSync('a')
    await limiter.bans.set('b', { for: '1m' })
    const { items } = await limiter.bans.list()
    expect(items.map(({ key, retryAfterMs, count }) => [key, retryAfterMs, count])).toEqual([
      ['a', 900_000, 1],
      ['b', 60_000, 0],
    ])
    expect(await limiter.bans.lift('a')).toBe(true)
    expect(await limiter.bans.get('a')).toBeUndefined()
  })
})
