import { expect, it } from 'vitest'
import { formatDuration } from './format-duration.js'

it.each([
  [0, '0'],
  [0.001, '1µs'],
  [0.25, '250µs'],
  [8.3333, '8.33ms'],
  [90.909, '90.9ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [1_810, '1.81s'],
  [59_900, '59.9s'],
  [60_000, '1m'],
  [100_000, '1m40s'],
  [3_600_000, '1h'],
  [5_400_000, '1h30m'],
  [86_400_000, '1d'],
  [31 * 86_400_000, '31d'],
])('shows %d ms as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
