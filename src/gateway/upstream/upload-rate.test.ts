import { expect, it } from 'vitest'
import { UploadRate } from './upload-rate.js'

const limits = { minUploadRate: 240, uploadGraceMs: 10_000 }

it('is too slow below 240 bytes per second over 10 s, and not at 240', () => {
  expect(new UploadRate(0, 500).isTooSlow(10_000, 500 + 2_399, false, limits)).toBe(true)
  expect(new UploadRate(0, 500).isTooSlow(10_000, 500 + 2_400, false, limits)).toBe(false)
})

it('is not too slow before the end of the first period', () => {
  expect(new UploadRate(0, 0).isTooSlow(9_999, 0, false, limits)).toBe(false)
})

it('is checked in each period: a fast start does not compensate for a slow rest', () => {
  const rate = new UploadRate(0, 0)
  expect(rate.isTooSlow(10_000, 1_000_000, false, limits)).toBe(false)
  expect(rate.isTooSlow(20_000, 1_000_100, false, limits)).toBe(true)
})

it('does not count periods in which the upstream does not read', () => {
  const rate = new UploadRate(0, 0)
  expect(rate.isTooSlow(10_000, 0, true, limits)).toBe(false)
  expect(rate.isTooSlow(19_999, 0, false, limits)).toBe(false)
  expect(rate.isTooSlow(20_000, 0, false, limits)).toBe(true)
})
