import { describe, expect, it } from 'vitest'
import { syntheticTraffic } from './traffic.js'

const second = 1_000_000
const describeTraffic = (options: object): string => syntheticTraffic({ seed: 1, ...options }, 10, second).description

describe('synthetic traffic', () => {
  it('crosses window boundaries by default', () => {
    const { arrivals, until, description } = syntheticTraffic({ seed: 1 }, 10, second)
    expect(description).toBe('bursts of 20 over 200ms, every 2s from 900ms')
    expect([...arrivals]).toHaveLength(60)
    expect(until).toBe(6 * second)
  })

  it('sends explicit bursts all at once', () => {
    expect(describeTraffic({ burst: 5, every: second })).toBe('bursts of 5 at once, every 1s from 0s')
    expect(describeTraffic({ burst: 5, startOffset: 500_000 })).toBe('bursts of 5 at once, every 2s from 500ms')
  })

  it('is uniform if only a rate is given, and exceeds the limit if none is', () => {
    expect(describeTraffic({ rate: 11 })).toBe('uniform 11/s')
    expect(describeTraffic({ traffic: 'uniform' })).toBe('uniform 15/s')
    expect(describeTraffic({ traffic: 'poisson', seed: 9 })).toBe('poisson 15/s, seed 9')
  })

  it('rejects simulations of more than 200 million requests', () => {
    expect(() => describeTraffic({ rate: 1e7, duration: 100 * second })).toThrow('the maximum is 200000000')
    expect(() => describeTraffic({ burst: 1e9, every: 1 })).toThrow('the maximum is 200000000')
  })
})
