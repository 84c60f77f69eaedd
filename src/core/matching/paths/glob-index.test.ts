import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GlobIndex } from './glob-index.js'
import { compileGlob, matchesGlob } from './segment-glob.js'

const indexOf = (globs: readonly string[]) => {
  const index = new GlobIndex<string>()
  for (const glob of globs) index.add(glob, glob)
  return index
}
const numbered = (count: number, globOf: (i: number) => string) => Array.from({ length: count }, (_, i) => globOf(i))

describe('GlobIndex', () => {
  it('finds every glob that matches', () => {
    const globs = fc.uniqueArray(fc.stringMatching(/^[ab]{0,2}[*?][ab*?]{0,3}$/), { maxLength: 30 })
    fc.assert(
      fc.property(globs, fc.stringMatching(/^[ab]{1,6}$/), (list, segment) => {
        const expected = list.filter((glob) => matchesGlob(compileGlob(glob), segment))
        expect(indexOf(list).find(segment).sort()).toEqual(expected.sort())
      }),
    )
  })

  it.each([
    ['prefixes', (i: number) => `tenant-${i}-*`, 'tenant-4711-x', ['tenant-4711-*']],
    ['suffixes', (i: number) => `*-${i}.json`, 'x-4711.json', ['*-4711.json']],
    ['both', (i: number) => `a*-${i}`, 'ab-4711', ['a*-4711']],
  ])('tries only the matching one of 100 000 globs that differ in their %s', (_, globOf, segment, found) => {
    const index = indexOf(numbered(100_000, globOf))
    expect(index.candidates(segment).map(({ item }) => item)).toEqual(found)
    expect(index.candidates('nothing-like-it')).toEqual([])
  })
})
