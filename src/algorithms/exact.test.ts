import fc from 'fast-check'
import { expect, it } from 'vitest'
import { mulDiv, mulDivUp, mulMod } from './exact.js'

const divisors = fc.integer({ min: 1, max: 2 ** 45 })
const factors = fc.oneof(fc.integer({ min: 0, max: 1e9 }), fc.integer({ min: 0, max: 2 ** 46 }))

it('multiplies and divides exactly if the product exceeds 2⁵³', () => {
  fc.assert(
    fc.property(divisors, factors, fc.double({ min: 0, max: 1, noNaN: true }), (m, b, part) => {
      const a = Math.min(m, Math.floor(part * m))
      const product = BigInt(a) * BigInt(b)
      expect(BigInt(mulDiv(a, b, m))).toBe(product / BigInt(m))
      expect(BigInt(mulMod(a, b, m))).toBe(product % BigInt(m))
      expect(BigInt(mulDivUp(a, b, m))).toBe((product + BigInt(m) - 1n) / BigInt(m))
    }),
    { numRuns: 20_000 },
  )
})

it('is exact around 2⁵³', () => {
  expect(mulDiv(2 ** 26, 2 ** 27, 2 ** 26)).toBe(2 ** 27)
  expect(mulDiv(2 ** 45 - 1, 1_000_000_000, 2 ** 45)).toBe(999_999_999)
  expect(mulMod(2 ** 45 - 1, 1_000_000_000, 2 ** 45)).toBe(2 ** 45 - 1_000_000_000)
})
