import { describe, expect, it } from 'vitest'
import { seededRandom } from '../core/seeded-random.js'
import { distributions, serviceTimes } from './service-time.js'

const draw = (distribution: (typeof distributions)[number], count = 50_000): number[] => {
  const next = serviceTimes(distribution, 200_000, seededRandom(7))
  return Array.from({ length: count }, next)
}

describe('serviceTimes', () => {
  it.each(distributions)('%s: has the mean that was asked for, in whole ticks', (distribution) => {
    const times = draw(distribution)
    expect(times.every((time) => Number.isInteger(time) && time >= 1)).toBe(true)
    const mean = times.reduce((sum, time) => sum + time, 0) / times.length
    expect(Math.abs(mean / 200_000 - 1)).toBeLessThan(0.03)
  })

  it('has the shape of the distribution', () => {
    const above = (distribution: (typeof distributions)[number], limit: number): number =>
      draw(distribution).filter((time) => time > limit).length / 50_000
    expect(new Set(draw('fixed'))).toEqual(new Set([200_000]))
    expect(above('uniform', 400_000)).toBe(0)
    expect(above('uniform', 200_000)).toBeCloseTo(0.5, 1)
    expect(above('exponential', 400_000)).toBeCloseTo(Math.exp(-2), 1)
    // The 99th percentile is the mean times e^(2.326 − 1/2).
    expect(above('lognormal', 200_000 * Math.exp(1.826))).toBeCloseTo(0.01, 2)
  })

  it('repeats with the same seed', () => {
    expect(draw('lognormal', 10)).toEqual(draw('lognormal', 10))
  })
})
