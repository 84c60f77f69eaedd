import { describe, expect, it } from 'vitest'
import { endOfString, skipSpace } from './scanner.js'

describe('endOfString', () => {
  it.each([
    ['""', 2],
    ['"a", "b"', 3],
    ['"a\\"b" ', 6],
    ['"a\\\\" "', 5],
    ['"a\\\\\\"" "', 7],
  ])('finds the closing quote of %s', (text, end) => {
    expect(endOfString(text, 0)).toBe(end)
  })

  it.each(['"', '"a', '"a\\"', '"a\\\\\\"'])(
    'returns the length of the text if the string is not closed: %s',
    (text) => {
      expect(endOfString(text, 0)).toBe(text.length)
    },
  )

  it('starts at the given quote', () => {
    expect(endOfString('"a":"b"}', 4)).toBe(7)
  })
})

it('skips only the white space of JSON', () => {
  expect(skipSpace(' \t\r\n x', 0)).toBe(5)
  expect(skipSpace('  \u00a0', 0)).toBe(2)
  expect(skipSpace('x  ', 1)).toBe(3)
})
