import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { joinKeyParts } from './key-parts.js'

describe('joinKeyParts', () => {
  it('joins ordinary parts readably', () => {
    expect(joinKeyParts(['203.0.113.7', 'u42'])).toBe('203.0.113.7|u42')
    expect(joinKeyParts(['2001:db8:0:100::/56', '/api/users'])).toBe('2001:db8:0:100::/56|/api/users')
  })

  it('escapes separators inside parts', () => {
    expect(joinKeyParts(['a|b', 'c'])).toBe('a\\|b|c')
    expect(joinKeyParts(['a', 'b|c'])).toBe('a|b\\|c')
    expect(joinKeyParts(['a\\', 'b'])).toBe('a\\\\|b')
  })

  it('never returns the same key for different lists', () => {
    const part = fc.array(fc.constantFrom('|', '\\', 'a', ''), { maxLength: 4 }).map((pieces) => pieces.join(''))
    const parts = fc.array(part, { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        expect(joinKeyParts(a) === joinKeyParts(b)).toBe(JSON.stringify(a) === JSON.stringify(b))
      }),
      { numRuns: 5000 },
    )
  })
})
