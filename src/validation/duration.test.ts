import { describe, expect, it } from 'vitest'
import { durationText } from '../core/band-label.js'
import { durationTicks } from './duration.js'

describe('durationTicks and durationText', () => {
  it.each([
    ['1ms', 1_000],
    ['500ms', 500_000],
    ['1.5ms', 1_500],
    ['0.001s', 1_000],
    ['1s', 1_000_000],
    ['1.5s', 1_500_000],
    ['1m', 60_000_000],
    ['1 m', 60_000_000],
    ['2h', 7_200_000_000],
    ['0.5d', 43_200_000_000],
    ['366d', 31_622_400_000_000],
    ['2w', 1_209_600_000_000],
    ['20 milliseconds', 20_000],
    ['1 second', 1_000_000],
    ['1 minute', 60_000_000],
    ['15 minutes', 900_000_000],
    ['1.5hours', 5_400_000_000],
    ['1 day', 86_400_000_000],
    ['1 week', 604_800_000_000],
    [0, 0],
    [0.5, 500_000],
    [0.1, 100_000],
    [0.000001, 1],
    [1.000001, 1_000_001],
    [60, 60_000_000],
  ])('parses %s as %d µs', (value, ticks) => {
    expect(durationTicks(value)).toBe(ticks)
  })

  it.each([
    ...[
      '',
      '1',
      '60',
      'm',
      '1M',
      '1y',
      '1 min',
      '1 Minute',
      '1h30m',
      '-1s',
      '+1s',
      '1e3s',
      '.5s',
      '1.s',
      '1  s',
      ' 1s',
      '0x1s',
      '1us',
    ],
    ...[
      '0.0000001s',
      `${'9'.repeat(50)}s`,
      '999999999999d',
      -1,
      -0.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      1e-7,
      1e21,
    ],
    ...[0.0000015, null, undefined, true, [], {}, 10n],
  ])('rejects %s', (value) => {
    expect(durationTicks(value)).toBeUndefined()
  })

  it.each([
    [86_400_000_000, '1d'],
    [90_000_000_000, '25h'],
    [5_400_000_000, '90m'],
    [90_000_000, '90s'],
    [1_500_000, '1500ms'],
    [1_001, '1001us'],
  ])('formats %d µs as %s', (ticks, text) => {
    expect(durationText(ticks)).toBe(text)
  })
})
