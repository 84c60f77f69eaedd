import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RateLimitText } from './rate-limit-text.js'

it('writes whatever numbers follow each other as a template would', () => {
  const number = fc.oneof(
    fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    fc.nat({ max: 1_000 }),
    fc.constantFrom(0, 9, 10, 99, 100, Number.MAX_SAFE_INTEGER, 2 ** 60, Number.POSITIVE_INFINITY),
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.tuple(number, number)), (policy, numbers) => {
      const text = new RateLimitText(policy)
      for (const [left, seconds] of numbers) {
        const written = text.write(left, seconds)
        expect(written).toBe(`${policy};r=${left};t=${seconds}`)
        expect(text.leftIn(written)).toBe(String(left))
      }
    }),
  )
})
