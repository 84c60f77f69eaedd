import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { hashSlot } from './hash-slot.js'
import { slotTag } from './slot-tags.js'

it('has a tag for every slot and never changes a tag, because stored keys contain it', () => {
  const tags = Array.from({ length: 16_384 }, (_, slot) => slotTag(slot))
  expect(tags.map(hashSlot)).toEqual(tags.map((_, slot) => slot))
  expect(tags.slice(0, 2)).toEqual(['1bz', 'emj'])
  expect(createHash('sha256').update(tags.join()).digest('hex').slice(0, 16)).toBe('a3215d917d1d8937')
})
