import fc from 'fast-check'
import { expect, it } from 'vitest'
import { finish } from '../../core/scheduling/steps.js'
import { decodeSteps, digestOf, digestSteps, encodeSteps } from './rules-file.js'

const mebi = 2 ** 20

it('texts of more than one chunk are encoded and decoded as a whole, wherever a character falls', () => {
  // Characters of one, two, three and four bytes; the prefix moves the ends of chunks through them.
  const characters = fc.constantFrom('a', 'é', '€', '😀')
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 5 }), characters, (start, character) => {
      const text = `\ufeff${start}${character.repeat(mebi / 2)}`
      const bytes = Buffer.from(text)
      const chunks = finish(encodeSteps(text))
      expect(chunks.length).toBeGreaterThan(1)
      expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
      expect(finish(decodeSteps(bytes)) === text).toBe(true)
    }),
    { numRuns: 15 },
  )
})

it('a digest does not depend on the chunks of its content', () => {
  const bytes = Buffer.from('rules\n'.repeat(100_000))
  const chunks = [bytes.subarray(0, 7), bytes.subarray(7, 300_000), bytes.subarray(300_000)]
  expect(finish(digestSteps(chunks))).toBe(digestOf(bytes))
})

it('a large file is read, written and hashed in steps', () => {
  const text = 'a'.repeat(4 * mebi)
  const stepsOf = (work: Generator): number => [...work].length
  expect(stepsOf(encodeSteps(text))).toBe(16)
  expect(stepsOf(decodeSteps(Buffer.from(text)))).toBe(16)
  expect(stepsOf(digestSteps([Buffer.from(text)]))).toBe(16)
})
