import { describe, expect, it } from 'vitest'
import type { Charge } from '../core/bucket-store.js'
import { compileIsShadow } from '../core/decision/gradual-enforcement.js'
import { compileSnapshot, MissingKey, type Plan } from '../core/decision/snapshot.js'
import { parseRule, parseRuleSets } from '../rules/schema/parse-rules.js'

const rule = (enforcePercent: number, id = 'api') => parseRule({ id, enforcePercent, capacity: 10, window: '1m' })

const enforced = (enforcePercent: number, keys: readonly string[], id = 'api'): readonly string[] => {
  const isShadow = compileIsShadow('set', rule(enforcePercent, id))
  return keys.filter((key) => !(isShadow?.(key) ?? false))
}

const addresses = Array.from({ length: 20_000 }, (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
const users = Array.from({ length: 20_000 }, (_, i) => `user:${i}`)

describe('enforcePercent', () => {
  it.each([0.5, 1, 10, 25, 50, 90, 99])('enforces for %f %% of addresses and of users', (percent) => {
    for (const keys of [addresses, users]) {
      const expected = (keys.length * percent) / 100
      // Four standard deviations of a random selection of this size.
      const tolerance = 4 * Math.sqrt(expected * (1 - percent / 100))
      expect(Math.abs(enforced(percent, keys).length - expected)).toBeLessThan(tolerance)
    }
  })

  it('enforces for no key at 0 and for every key at 100', () => {
    expect(enforced(0, users)).toEqual([])
    expect(enforced(100, users)).toEqual(users)
  })

  it('selects the same keys in every process and release', () => {
    const keys = Array.from({ length: 40 }, (_, i) => `key-${i}`)
    expect(enforced(20, keys)).toMatchInlineSnapshot(`
      [
        "key-1",
        "key-7",
        "key-15",
        "key-19",
        "key-31",
      ]
    `)
  })

  it('keeps every selected key when the percentage grows', () => {
    let before: readonly string[] = []
    for (const percent of [1, 5, 20, 60, 100]) {
      const now = new Set(enforced(percent, users))
      expect(before.filter((key) => !now.has(key))).toEqual([])
      before = [...now]
    }
  })

  it('selects other keys for another rule', () => {
    const one = new Set(enforced(50, users, 'one'))
    const both = enforced(50, users, 'two').filter((key) => one.has(key))
    expect(both.length / users.length).toBeGreaterThan(0.23)
    expect(both.length / users.length).toBeLessThan(0.27)
  })

  it('has no effect in SHADOW mode, which enforces the rule for no key', () => {
    expect(compileIsShadow('set', { ...rule(50), mode: 'SHADOW' })).toBeUndefined()
  })

  it('lets the next rule of strategy first decide about keys for which the rule is a shadow', () => {
    const plan = planOf({ strategy: 'first' })
    const [isEnforced = '', isShadow = ''] = [enforced(50, users)[0], users.find((key) => !enforced(50, [key]).length)]
    const chargesOf = (userId: string) =>
      (plan.charges({ userId }, 1) as readonly Charge[]).map(({ group, shadow }) => [group.ruleId, shadow])
    expect(chargesOf(isEnforced)).toEqual([['api', false]])
    expect(chargesOf(isShadow)).toEqual([
      ['api', true],
      ['other', false],
    ])
  })

  it('treats requests without a key as one key', () => {
    const results = Array.from({ length: 40 }, (_, i) => planOf({ id: `set-${i}` }).charges({}, 1))
    const rejected = results.filter((charges) => charges instanceof MissingKey).length
    expect(rejected).toBeGreaterThan(0)
    expect(rejected).toBeLessThan(40)
  })
})

function planOf(fields: object) {
  const common = { limitScope: 'USER_ID', onMissingKey: 'DENY', bands: [{ capacity: 1, window: '1m' }] }
  const rules = [
    { ...common, id: 'api', priority: 1, enforcePercent: 50 },
    { ...common, id: 'other', onMissingKey: 'SKIP' },
  ]
  const sets = parseRuleSets([{ id: 'set', rules, ...fields }])
  return compileSnapshot(sets, { maxWaitMs: 0, resetBucketsOnReload: true, resets: () => 0 }).defaultPlan as Plan
}
