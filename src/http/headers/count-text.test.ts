import fc from 'fast-check'
import { expect, it } from 'vitest'
import { countText } from './count-text.js'

it('writes whatever numbers follow each other as the engine does', () => {
  const number = fc.oneof(fc.nat({ max: Number.MAX_SAFE_INTEGER }), fc.nat({ max: 5_000 }), fc.double())
  fc.assert(
    fc.property(fc.array(number), (numbers) => {
      expect(numbers.map(countText)).toEqual(numbers.map(String))
    }),
  )
})

it('writes counts around a thousand and a million, downwards and upwards', () => {
  const counts = [0, 1, 999, 1_000, 1_001, 1_999, 2_000, 999_999, 1_000_000, 1_000_999, Number.MAX_SAFE_INTEGER]
  for (const count of [...counts, ...counts.toReversed()]) expect(countText(count)).toBe(String(count))
})
