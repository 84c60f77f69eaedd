import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileGlob, matchesGlob as matches, matchGreedily, matchInParallel } from './segment-glob.js'

const matchesGlob = (glob: string, text: string): boolean => matches(compileGlob(glob), text)

describe('matchesGlob', () => {
  it.each([
    ['v?', 'v1', true],
    ['v?', 'v', false],
    ['v?', 'v12', false],
    ['*.json', 'a.json', true],
    ['*.json', '.json', true],
    ['*.json', 'a.jsonx', false],
    ['v*', 'v', true],
    ['v*', 'w1', false],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['?*', 'x', true],
    ['A*', 'abc', false],
    ['a.c', 'abc', false],
  ])('%s matches %s: %s', (glob, text, expected) => expect(matchesGlob(glob, text)).toBe(expected))

  it('counts an escaped character as one character', () => {
    expect(matchesGlob('a?b', 'a%20b')).toBe(true)
    expect(matchesGlob('caf?', 'caf%C3%A9')).toBe(true)
    expect(matchesGlob('?', '%F0%9F%98%80')).toBe(true)
    expect(matchesGlob('??', '%F0%9F%98%80')).toBe(false)
    expect(matchesGlob('??', '%20%20')).toBe(true)
    expect(matchesGlob('?', '%20%20')).toBe(false)
    expect(matchesGlob('*0', '%20')).toBe(false)
    expect(matchesGlob('?zz', '%zz')).toBe(true)
  })

  it('agrees with exhaustive matching', () => {
    const character = fc.constantFrom('a', 'b', '%20', '%C3%A9')
    const glob = fc.array(fc.oneof(character, fc.constantFrom('*', '?')), { maxLength: 8 })
    fc.assert(
      fc.property(glob, fc.array(character, { maxLength: 8 }), (pattern, text) => {
        const expected = naive(pattern, text)
        expect(matchesGlob(pattern.join(''), text.join(''))).toBe(expected)
        expect(matchInParallel(pattern.join(''), text.join(''))).toBe(expected)
      }),
      { numRuns: 5000 },
    )
  })

  it('takes linear time where backtracking would take text × glob steps', () => {
    const text = 'a'.repeat(15_000)
    const run = 'a'.repeat(500)
    const steps = 4 * (text.length + run.length + 4)
    // The greedy matcher gives up, so that the total cost is these steps and one pass over the text.
    expect(matchGreedily(`*${run}1*`, text, steps)).toBeUndefined()
    expect(matchesGlob(`*${run}1*`, text)).toBe(false)
    expect(matchesGlob(`*${run}1*`, `${text}1`)).toBe(true)
    expect(matchesGlob(`*${run}?1*`, `${text}1x`)).toBe(true)
    expect(matchesGlob(`*${run}?1?*`, `${text}1`)).toBe(false)
    // The literal prefix and suffix are compared in place, so that nothing is left to search.
    expect(compileGlob(`*${run}1`)).toEqual({ prefix: '', middle: '*', suffix: `${run}1` })
    expect(matchesGlob(`*${run}1`, text)).toBe(false)
  })

  it('handles many stars', () => {
    expect(matchesGlob('*a*a*a*a*a*a*a*a*b', 'a'.repeat(1_000_000))).toBe(false)
    expect(matchesGlob('*a*a*a*a*a*a*a*a*b', `${'a'.repeat(1_000_000)}b`)).toBe(true)
    expect(matchesGlob('*?*?*?*?b', '%C3'.repeat(300_000))).toBe(false)
  })
})

function naive([wanted, ...glob]: readonly string[], text: readonly string[]): boolean {
  if (wanted === undefined) return text.length === 0
  if (wanted === '*') return naive(glob, text) || (text.length > 0 && naive(['*', ...glob], text.slice(1)))
  return text.length > 0 && (wanted === '?' || wanted === text[0]) && naive(glob, text.slice(1))
}
