import { describe, expect, it } from 'vitest'
import type { AlgorithmName, OnRuleChange } from '../core/rule.js'
import { parseRuleSets } from '../rules/schema/parse-rules.js'
import { manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'

/** The permits left after 40 of 100 were used and the capacity changed to 50, and after it changed back. */
async function remainingAfterChange(
  onRuleChange: OnRuleChange | undefined,
  resetBucketsOnReload = true,
  algorithm: AlgorithmName = 'FIXED_WINDOW',
) {
  let capacity = 100
  const load = async () =>
    parseRuleSets([
      {
        id: 'api',
        rules: [
          {
            id: 'rule',
            algorithm,
            bands: [{ label: 'hour', capacity, window: '1h' }],
            ...(onRuleChange && { onRuleChange }),
          },
        ],
      },
    ])
  const clock = manualClock(1_800_000_000_000)
  const gate = await createFluxGate({ rules: { load, source: 'test' }, clock, reload: { resetBucketsOnReload } })
  const remaining = async () => (await gate.check({ clientIp: '10.0.0.1' }, { peek: true })).remaining + 1
  await gate.check({ clientIp: '10.0.0.1' }, { permits: 40 })
  capacity = 50
  await gate.reload()
  const lower = await remaining()
  capacity = 100
  await gate.reload()
  const results = [lower, await remaining()]
  await gate.close()
  return results
}

describe('onRuleChange', () => {
  it.each([true, false])('RESET: starts with full buckets, with resetBucketsOnReload %s', async (setting) => {
    expect(await remainingAfterChange('RESET', setting)).toEqual([50, 100])
  })

  it.each([true, false])('KEEP: keeps the used permits, with resetBucketsOnReload %s', async (setting) => {
    expect(await remainingAfterChange('KEEP', setting)).toEqual([10, 60])
  })

  it.each(['TOKEN_BUCKET', 'LEAKY_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG', 'SLIDING_WINDOW_COUNTER'] as const)(
    'SCALE: keeps the used fraction of a %s',
    async (algorithm) => {
      expect(await remainingAfterChange('SCALE', true, algorithm)).toEqual([30, 60])
    },
  )

  it('follows resetBucketsOnReload without onRuleChange', async () => {
    expect(await remainingAfterChange(undefined, true)).toEqual([50, 100])
    expect(await remainingAfterChange(undefined, false)).toEqual([10, 60])
  })

  it.each(['RESET', 'KEEP', 'SCALE', undefined] as const)(
    'keeps the slots of requests in progress under %s',
    async (onRuleChange) => {
      let band = { capacity: 2, maxHold: '60s' }
      const load = async () =>
        parseRuleSets({
          id: 'api',
          rules: [{ id: 'rule', algorithm: 'CONCURRENCY', bands: [band], ...(onRuleChange && { onRuleChange }) }],
        })
      const gate = await createFluxGate({ rules: { load, source: 'test' }, clock: manualClock(1_800_000_000_000) })
      const free = async () => (await gate.check({}, { permits: 0 })).remaining
      const first = await gate.acquire({})
      await gate.acquire({})
      band = { capacity: 1, maxHold: '90s' }
      await gate.reload()
      expect((await gate.check({})).allowed).toBe(false)
      band = { capacity: 3, maxHold: '60s' }
      await gate.reload()
      expect(await free()).toBe(1)
      expect(await first.release()).toBe(true)
      expect(await free()).toBe(2)
      await gate.close()
    },
  )
})
