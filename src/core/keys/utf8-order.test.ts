import { expect, it } from 'vitest'
import { firstFrom, inUtf8Order } from './utf8-order.js'

it('compares characters outside the basic plane after all others', () => {
  expect(['\u{1f600}', '\uffff', 'b', 'a', ''].sort(inUtf8Order)).toEqual(['', 'a', 'b', '\uffff', '\u{1f600}'])
})

it('finds the place of a key in a list of 1,000 by looking at 10 entries at most', () => {
  const keys = Array.from({ length: 1_000 }, (_, i) => `key ${String(i).padStart(4, '0')}`)
  let looks = 0
  const keyOf = (key: string): string => {
    looks += 1
    return key
  }
  for (const [key, index] of [
    ['', 0],
    ['key 0000', 0],
    ['key 0500', 500],
    ['key 0500a', 501],
    ['key 0999', 999],
    ['lock', 1_000],
  ] as const) {
    looks = 0
    expect(firstFrom(keys, key, keyOf)).toBe(index)
    expect(looks).toBeLessThanOrEqual(10)
  }
})
