import { describe, expect, it } from 'vitest'
import { algorithms, duration, pairs, positiveNumber, wholeNumber } from './option-values.js'

describe('option values', () => {
  it.each(['', 'x', '1.5', '-1', '1e3', '0x10', 'Infinity', '0', '11', '99999999999999999999'])(
    'rejects %j as an integer from 1 to 10',
    (text) => {
      expect(() => wholeNumber(1, 10)(text)).toThrow('an integer from 1 to 10')
    },
  )

  it('accepts both ends of a range', () => {
    expect([wholeNumber(1, 10)('1'), wholeNumber(1, 10)('10')]).toEqual([1, 10])
  })

  it('accepts fractional rates, but not 0', () => {
    expect(positiveNumber(100)('0.5')).toBe(0.5)
    for (const text of ['0', '-1', '101', 'NaN', '']) expect(() => positiveNumber(100)(text)).toThrow('greater than 0')
  })

  it('parses durations with a unit, and numbers as seconds', () => {
    expect([duration('500ms'), duration('1.5s'), duration('2m'), duration('3'), duration('0s')]).toEqual([
      500_000, 1_500_000, 120_000_000, 3_000_000, 0,
    ])
    for (const text of ['', 'soon', '1 fortnight', '-1s']) expect(() => duration(text)).toThrow('500ms')
  })

  it('parses algorithms in any spelling and suggests the nearest name', () => {
    expect(algorithms('token-bucket,Leaky_Bucket')).toEqual(['TOKEN_BUCKET', 'LEAKY_BUCKET'])
    expect(algorithms('all')).toHaveLength(5)
    expect(() => algorithms('tokn-bucket')).toThrow('Did you mean TOKEN_BUCKET?')
    expect(() => algorithms('quantum')).toThrow('Unknown algorithm "quantum". Use TOKEN_BUCKET,')
  })

  it('collects pairs, splits at the first separator, and treats __proto__ as a normal name', () => {
    const collect = pairs(':')
    expect(collect('b:2', collect('a: x:y'))).toEqual({ a: 'x:y', b: '2' })
    expect(Object.keys(collect('__proto__:1'))).toEqual(['__proto__'])
    for (const text of ['novalue', ':x', '']) expect(() => collect(text)).toThrow('name:value')
  })
})
