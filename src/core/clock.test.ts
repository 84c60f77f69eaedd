import { expect, it } from 'vitest'
import { systemClock, ticks } from './clock.js'

it('returns whole microseconds, consistently in milliseconds and in ticks, and never steps back', () => {
  for (let i = 0; i < 10_000; i++) {
    const before = Math.round(systemClock.now() * 1000)
    const between = ticks(systemClock)
    const after = Math.round(systemClock.now() * 1000)
    expect(Number.isInteger(between)).toBe(true)
    expect([before, between, after]).toEqual([before, between, after].toSorted((a, b) => a - b))
  }
})

it('rounds the milliseconds of other clocks to the nearest microsecond', () => {
  expect(ticks({ now: () => 12.3454 })).toBe(12_345)
  expect(ticks({ now: () => 12.3456 })).toBe(12_346)
})
