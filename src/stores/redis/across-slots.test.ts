import { describe, expect, it } from 'vitest'
import type { BucketGroup, Charge, LeasingStore } from '../../core/bucket-store.js'
import type { AlgorithmName } from '../../core/rule.js'
import { band, chargeOf, group, second, startMs } from '../../testing/fixtures.js'
import { type ManualClock, manualClock } from '../../testing/manual-clock.js'
import { type MemoryStore, memoryStore } from '../memory/memory-store.js'
import { acrossSlots } from './across-slots.js'

const ruleOf = (ruleId: string, capacity: number, algorithm: AlgorithmName = 'TOKEN_BUCKET'): BucketGroup =>
  group(
    ruleId,
    ['a', 'b'].map((label, i) => band({ label, algorithm, capacity: capacity * (i + 1), windowTicks: 60 * second })),
  )

/** One node per first letter of the key, each with its own clock. Nodes can be made to fail. */
function cluster() {
  const failing = new Set<string>()
  const clocks: Record<string, ManualClock> = { x: manualClock(startMs), y: manualClock(startMs + 5) }
  const nodes: Record<string, MemoryStore> = Object.fromEntries(
    Object.entries(clocks).map(([name, clock]) => [name, memoryStore({ clock })]),
  )
  const nodeOf = (key: string): MemoryStore => {
    const name = key.slice(0, 1)
    if (failing.has(name)) throw new Error(`${name} is down`)
    return nodes[name] as MemoryStore
  }
  const calls: string[] = []
  const store: LeasingStore = {
    async charge(demands, peek) {
      const keys = new Set(demands.map(({ key }) => key.slice(0, 1)))
      if (keys.size !== 1) throw new Error('CROSSSLOT')
      calls.push(`${peek ? 'peek' : 'charge'} ${[...keys].join()}`)
      return nodeOf((demands[0] as Charge).key).charge(demands, peek)
    },
    async refund(refunds) {
      for (const refund of refunds) {
        calls.push(`refund ${refund.key.slice(0, 1)}`)
        await nodeOf(refund.key).refund([refund])
      }
    },
    reset: async (rule, key) => nodeOf(key).reset(rule, key),
    leasing: { lease: async () => expect.unreachable(), settle: async () => expect.unreachable() },
    close: async () => {},
  }
  const whole = acrossSlots(store, (key) => key.charCodeAt(0))
  const remaining = async (rule: BucketGroup, key: string) =>
    (await nodes[key.slice(0, 1)]?.charge([chargeOf(rule, key, { permits: 0 })], true))?.bands.map(
      (one) => one.remaining,
    )
  return { whole, calls, failing, remaining, clocks }
}

describe('a decision over several slots', () => {
  it('needs one call if all keys are in one slot', async () => {
    const { whole, calls } = cluster()
    await whole.charge([chargeOf(ruleOf('one', 5), 'x1'), chargeOf(ruleOf('two', 5), 'x2')], false)
    expect(calls).toEqual(['charge x'])
  })

  it('returns bands in the order of the charges, and the latest time of the nodes', async () => {
    const { whole } = cluster()
    const [one, two, three] = [ruleOf('one', 5), ruleOf('two', 7), ruleOf('three', 9)]
    const result = await whole.charge([chargeOf(one, 'x'), chargeOf(two, 'y'), chargeOf(three, 'x')], false)
    expect(result.bands.map(({ remaining }) => remaining)).toEqual([4, 9, 6, 13, 8, 17])
    expect(result).toMatchObject({ granted: true, now: (startMs + 5) * 1000 })
  })

  it.each(['TOKEN_BUCKET', 'LEAKY_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG', 'SLIDING_WINDOW_COUNTER'] as const)(
    '%s: gives back what it took if another slot rejects',
    async (algorithm) => {
      const { whole, remaining } = cluster()
      const [loose, tight] = [ruleOf('loose', 5, algorithm), ruleOf('tight', 1)]
      const both = [chargeOf(loose, 'x'), chargeOf(tight, 'y')]
      await whole.charge(both, false)
      for (let i = 0; i < 3; i++) {
        const rejected = await whole.charge(both, false)
        expect(rejected.granted).toBe(false)
        expect(rejected.bands.map(({ allowed, delay, remaining }) => [allowed, delay, remaining])).toEqual([
          [true, 0, 4],
          [true, 0, 9],
          [false, 0, 0],
          [true, 0, 1],
        ])
      }
      expect(await remaining(loose, 'x')).toEqual([4, 9])
    },
  )

  it('refunds charged slots and fails if another slot fails', async () => {
    const { whole, failing, remaining } = cluster()
    const rule = ruleOf('rule', 5)
    failing.add('y')
    await expect(whole.charge([chargeOf(rule, 'x'), chargeOf(rule, 'y')], false)).rejects.toThrow('y is down')
    expect(await remaining(rule, 'x')).toEqual([5, 10])
  })

  it('refunds neither peeks nor rejected shadow charges', async () => {
    const { whole, calls, remaining } = cluster()
    const [loose, tight, shadow] = [ruleOf('loose', 5), ruleOf('tight', 1), ruleOf('shadow', 1)]
    await whole.charge([chargeOf(tight, 'y'), chargeOf(shadow, 'x')], false)
    await whole.charge([chargeOf(loose, 'x'), chargeOf(tight, 'y')], true)
    expect(calls.some((call) => call.startsWith('refund'))).toBe(false)
    // In slot x, only the loose rule was charged; the shadow rule rejected.
    await whole.charge([chargeOf(loose, 'x'), chargeOf(shadow, 'x', { shadow: true }), chargeOf(tight, 'y')], false)
    expect(calls.filter((call) => call.startsWith('refund'))).toEqual(['refund x'])
    expect([await remaining(loose, 'x'), await remaining(shadow, 'x')]).toEqual([
      [5, 10],
      [0, 1],
    ])
  })

  it('charges shadow rules with the others, and ignores their rejection', async () => {
    const { whole, remaining } = cluster()
    const [rule, shadow] = [ruleOf('rule', 3), ruleOf('shadow', 1)]
    const both = [chargeOf(rule, 'x'), chargeOf(shadow, 'y', { shadow: true })]
    const granted = [await whole.charge(both, false), await whole.charge(both, false)].map(({ granted }) => granted)
    expect(granted).toEqual([true, true])
    expect([await remaining(rule, 'x'), await remaining(shadow, 'y')]).toEqual([
      [1, 4],
      [0, 1],
    ])
  })
})
