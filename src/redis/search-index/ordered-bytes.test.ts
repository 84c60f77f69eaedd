import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { endOfPrefix, endOfText, numberBytes, textBytes, textOfBytes } from './ordered-bytes.js'

const text = fc.string({ unit: 'binary' })
const bytes = fc.uint8Array({ maxLength: 6 }).map((array) => Buffer.from(array))

describe('order-preserving encoding', () => {
  it('keeps the order of texts regardless of the bytes that follow', () => {
    const place = (value: string, rest: Buffer) => Buffer.concat([textBytes(value), endOfText, rest])
    fc.assert(
      fc.property(text, text, bytes, bytes, (one, other, rest, otherRest) => {
        const wanted = Math.sign(Buffer.compare(Buffer.from(one), Buffer.from(other)))
        if (wanted !== 0) expect(Buffer.compare(place(one, rest), place(other, otherRest))).toBe(wanted)
      }),
    )
    expect(textBytes('a\u0000b')).toEqual(Buffer.from([97, 0, 255, 98]))
  })

  it('decodes texts to their original value', () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(textOfBytes(textBytes(value))).toBe(value)
      }),
    )
  })

  it('keeps the order of numbers', () => {
    const number = fc.double({ noNaN: true })
    fc.assert(
      fc.property(number, number, (one, other) => {
        expect(Buffer.compare(numberBytes(one), numberBytes(other))).toBe(one === other ? 0 : one < other ? -1 : 1)
      }),
    )
    expect(numberBytes(-0)).toEqual(numberBytes(0))
  })
})

describe('endOfPrefix', () => {
  it('returns the smallest bytes after all members with the prefix', () => {
    // A small alphabet makes shared prefixes likely. It includes 255, which has no successor.
    const few = fc.array(fc.constantFrom(0, 1, 0xec, 0xfe, 0xff), { maxLength: 5 }).map((list) => Buffer.from(list))
    fc.assert(
      fc.property(few, few, (prefix, member) => {
        const end = endOfPrefix(prefix)
        const isInside = Buffer.compare(member, prefix) >= 0 && (end === undefined || Buffer.compare(member, end) < 0)
        expect(isInside).toBe(member.subarray(0, prefix.length).equals(prefix))
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([
    ['a', [0x62]],
    ['한', [0xed, 0x95, 0x9d]],
    ['😀', [0xf0, 0x9f, 0x98, 0x81]],
    ['\u{10ffff}', [0xf4, 0x8f, 0xbf, 0xc0]],
  ])('increments the last byte of %s', (prefix, end) =>
    expect(endOfPrefix(Buffer.from(prefix))).toEqual(Buffer.from(end)),
  )

  it('carries over bytes of 255, and is unbounded if all bytes are 255', () => {
    expect(endOfPrefix(Buffer.from([1, 255, 255]))).toEqual(Buffer.from([2]))
    expect(endOfPrefix(Buffer.from([255, 255]))).toBeUndefined()
    expect(endOfPrefix(Buffer.alloc(0))).toBeUndefined()
  })
})
