import { describe, expect, it } from 'vitest'
import { parseTimestamp } from './timestamp.js'

const instant = Date.UTC(2026, 0, 31, 12, 0, 0) * 1000

describe('parseTimestamp', () => {
  it.each([
    ['1769860800000', instant],
    ['1769860800000.5', instant + 500],
    ['1769860800', instant],
    ['1769860800.25', instant + 250_000],
    ['1769860800000000', instant],
    ['1769860800000000000', instant],
    ['2026-01-31T12:00:00Z', instant],
    ['2026-01-31T12:00:00.123456Z', instant + 123_456],
    ['2026-01-31 12:00:00', instant],
    ['2026-01-31 12:00:00,5', instant + 500_000],
    ['2026-01-31T13:00:00+01:00', instant],
    ['2026-01-31T07:00:00-0500', instant],
    ['2026-01-31', Date.UTC(2026, 0, 31) * 1000],
    ['31/Jan/2026:12:00:00 +0000', instant],
    ['31/Jan/2026:13:30:00.250 +0130', instant + 250_000],
    [' 250 ', 250_000],
    ['0', 0],
  ])('parses %s', (text, ticks) => {
    expect(parseTimestamp(text)).toBe(ticks)
  })

  it('parses numbers like their text', () => {
    expect(parseTimestamp(1_769_860_800_000)).toBe(instant)
    expect(parseTimestamp(250)).toBe(250_000)
  })

  it.each(['', 'yesterday', '-5', '12:00', '2026-13-01', '2026-02-31T25:00:00Z', '31/Foo/2026:12:00:00 +0000', '1e5'])(
    'rejects %j',
    (text) => {
      expect(parseTimestamp(text)).toBeUndefined()
    },
  )

  it.each([null, undefined, {}, [], Number.NaN, -1, Number.POSITIVE_INFINITY])('rejects %s', (value) => {
    expect(parseTimestamp(value)).toBeUndefined()
  })
})
