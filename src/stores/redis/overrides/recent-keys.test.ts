import { describe, expect, it } from 'vitest'
import type { BucketGroup } from '../../../core/bucket-store.js'
import { RecentKeys } from './recent-keys.js'

const group = (ruleId: string): BucketGroup => ({ ruleSetId: 's', ruleId, generation: '1', permits: 1, bands: [] })

describe('RecentKeys', () => {
  it('keeps one value per rule and key until it is deleted', () => {
    const recent = new RecentKeys<number>(10)
    const [one, other] = [group('one'), group('other')]
    recent.set(one, 'a', 1)
    recent.set(other, 'a', 2)
    recent.set(one, 'a', 3)
    expect([recent.get(one, 'a'), recent.get(other, 'a'), recent.get(one, 'b')]).toEqual([3, 2, undefined])
    recent.delete(one, 'a')
    expect([recent.get(one, 'a'), recent.get(other, 'a')]).toEqual([undefined, 2])
  })

  it('evicts the least recently used keys when it is full', () => {
    const recent = new RecentKeys<number>(10)
    const rules = [group('one'), group('other')]
    const ruleOf = (i: number) => rules[i % 2] as BucketGroup
    for (let i = 0; i < 100; i++) {
      recent.set(ruleOf(i), `key-${i}`, i)
      expect(recent.get(ruleOf(0), 'key-0')).toBe(0)
    }
    const kept = Array.from({ length: 100 }, (_, i) => i).filter((i) => recent.get(ruleOf(i), `key-${i}`) !== undefined)
    expect(kept.length).toBeLessThanOrEqual(10)
    expect(kept).toContain(99)
  })
})
