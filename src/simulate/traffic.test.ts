import { describe, expect, it } from 'vitest'
import { seededRandom } from '../core/seeded-random.js'
import { burst, poisson, uniform } from './traffic.js'

const second = 1_000_000
const instants = (arrivals: Iterable<{ at: number }>): number[] => [...arrivals].map(({ at }) => at)

describe('uniform traffic', () => {
  it('is evenly spaced from the start to just before the end', () => {
    expect(instants(uniform(4, { from: 500_000, until: 1_500_000 }))).toEqual([500_000, 750_000, 1_000_000, 1_250_000])
    expect(instants(uniform(4, { from: 500_000, until: 1_500_001 }))).toHaveLength(5)
  })

  it('does not drift at rates that do not divide a second: 3/s for an hour are 10 800', () => {
    const all = instants(uniform(3, { from: 0, until: 3_600 * second }))
    expect(all).toHaveLength(10_800)
    expect(all[10_797]).toBe(3_599 * second)
  })

  it('supports rates below one per second', () => {
    expect(instants(uniform(0.5, { from: 0, until: 5 * second }))).toEqual([0, 2 * second, 4 * second])
  })
})

describe('poisson traffic', () => {
  const seed = 7
  const run = (ofSeed: number): number[] =>
    instants(poisson(900, { from: 0, until: 100 * second }, seededRandom(ofSeed)))

  it(`has its rate on average (seed ${seed})`, () => {
    // 90,000 expected; 1,500 are five standard deviations.
    expect(Math.abs(run(seed).length - 90_000)).toBeLessThan(1_500)
  })

  it(`has exponential gaps: a share of e⁻¹ exceeds the mean (seed ${seed})`, () => {
    const all = run(seed)
    const gaps = all.slice(1).map((at, i) => at - (all[i] as number))
    const long = gaps.filter((gap) => gap > second / 900).length / gaps.length
    expect(long).toBeGreaterThan(0.36)
    expect(long).toBeLessThan(0.376)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(0)
  })

  it('is the same for the same seed and different for another seed', () => {
    expect(run(seed)).toEqual(run(seed))
    expect(run(seed)).not.toEqual(run(seed + 1))
  })
})

describe('bursts', () => {
  it('arrive at the same time without a spread', () => {
    const all = instants(burst({ size: 3, every: second, spread: 0 }, { from: 900_000, until: 2 * second }))
    expect(all).toEqual([900_000, 900_000, 900_000, 1_900_000, 1_900_000, 1_900_000])
  })

  it('lie half before and half after a boundary if they start half a spread before it', () => {
    const all = instants(burst({ size: 20, every: 2 * second, spread: 200_000 }, { from: 900_000, until: 2 * second }))
    expect(all.filter((at) => at < second)).toHaveLength(10)
    expect(all.filter((at) => at >= second)).toHaveLength(10)
    expect(all.at(-1)).toBe(1_090_000)
  })

  it('stop in the middle when the traffic ends', () => {
    expect(instants(burst({ size: 4, every: second, spread: 400_000 }, { from: 0, until: 200_000 }))).toEqual([
      0, 100_000,
    ])
  })
})
