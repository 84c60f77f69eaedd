import { describe, expect, it } from 'vitest'
import { algorithms, duration, pairs, positiveNumber, wholeNumber } from './option-values.js'

describe('option values', () => {
  it.each(['', 'x', '1.5', '-1', '1e3', '0x10', 'Infinity', '0', '11', '99999999999999999999'])(
    'takes %j for no whole number from 1 to 10',
    (text) => {
      expect(() => wholeNumber(1, 10)(text)).toThrow('a whole number from 1 to 10')
    },
  )

  it('takes both ends of a range', () => {
    expect([wholeNumber(1, 10)('1'), wholeNumber(1, 10)('10')]).toEqual([1, 10])
  })

  it('takes rates with a fraction, but not 0', () => {
    expect(positiveNumber(100)('0.5')).toBe(0.5)
    for (const text of ['0', '-1', '101', 'NaN', '']) expect(() => positiveNumber(100)(text)).toThrow('above 0')
  })

  it('takes durations with a unit, and seconds without one', () => {
    expect([duration('500ms'), duration('1.5s'), duration('2m'), duration('3'), duration('0s')]).toEqual([
      500_000, 1_500_000, 120_000_000, 3_000_000, 0,
    ])
    for (const text of ['', 'soon', '1 week', '-1s']) expect(() => duration(text)).toThrow('500ms')
  })

  it('takes algorithms in any spelling and says which was probably meant', () => {
    expect(algorithms('token-bucket,Leaky_Bucket')).toEqual(['TOKEN_BUCKET', 'LEAKY_BUCKET'])
    expect(algorithms('all')).toHaveLength(5)
    expect(() => algorithms('tokn-bucket')).toThrow('Did you mean TOKEN_BUCKET?')
    expect(() => algorithms('quantum')).toThrow('There is no algorithm "quantum". Known: TOKEN_BUCKET,')
  })

  it('collects pairs; only the first separator counts, and no name is special', () => {
    const collect = pairs(':')
    expect(collect('b:2', collect('a: x:y'))).toEqual({ a: 'x:y', b: '2' })
    expect(Object.keys(collect('__proto__:1'))).toEqual(['__proto__'])
    for (const text of ['novalue', ':x', '']) expect(() => collect(text)).toThrow('name:value')
  })
})
