import { describe, expect, it } from 'vitest'
import { hashSlot } from './hash-slot.js'

describe('hashSlot', () => {
  it.each([
    ['', 0],
    ['123456789', 12_739],
    ['foo', 12_182],
    ['bar', 5_061],
    ['한국', 11_076],
  ])('maps %j to slot %i', (key, slot) => {
    expect(hashSlot(key)).toBe(slot)
  })

  it('hashes only the hash tag in the first braces', () => {
    for (const key of ['{foo}', 'a{foo}b', 'a{foo}{bar}', 'a{foo}}b']) expect(hashSlot(key)).toBe(12_182)
  })

  it('hashes the whole key if its braces are empty or incomplete', () => {
    expect(hashSlot('foo{}{bar}')).toBe(8_363)
    expect(hashSlot('{}')).not.toBe(0)
    expect(hashSlot('foo{bar')).not.toBe(hashSlot('bar'))
    expect(hashSlot('foo}bar{')).not.toBe(hashSlot('bar'))
    expect(hashSlot('foo{{bar}}zap')).toBe(hashSlot('{bar'))
  })

  it('distributes keys over all slots', () => {
    const slots = new Set(Array.from({ length: 200_000 }, (_, i) => hashSlot(`fluxgate:{id${i}}:set:rule:1:band`)))
    expect(slots.size).toBe(16_384)
    expect(Math.max(...slots)).toBe(16_383)
  })
})
