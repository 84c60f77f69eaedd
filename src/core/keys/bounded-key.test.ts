import { expect, it } from 'vitest'
import { escapeKeyPart, specialInKey } from './bounded-key.js'

it.each([
  ['', '%'],
  ['203.0.113.7', '203.0.113.7'],
  ['user:42', 'user%3A42'],
  ['2001:db8::1', '2001%3Adb8%3A%3A1'],
  [':{}% \t', '%3A%7B%7D%25%20%09'],
  ['ends with:', 'ends%20with%3A'],
  ['日本', '日本'],
  ['a:é:b', 'a%3Aé%3Ab'],
  ['a:😀', 'a%3A😀'],
  ['a:\ud83d', 'a%3A%uD83D'],
  ['\u00a0\u2028', '%uA0%u2028'],
])('escapes the part of a Redis key %j as %j', (part, escaped) => {
  expect(escapeKeyPart(part)).toBe(escaped)
})

it('leaves no separator, white space, control character or lone surrogate unescaped', () => {
  const wrong: number[] = []
  for (let code = 0; code < 0x10000; code++) {
    const character = String.fromCharCode(code)
    const escaped = escapeKeyPart(`a${character}b`)
    const isKept = escaped === `a${character}b`
    if (isKept === specialInKey.test(character) || (!isKept && !/^a%[%\w]*b$/.test(escaped))) wrong.push(code)
  }
  expect(wrong).toEqual([])
})
