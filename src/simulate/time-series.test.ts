import { describe, expect, it } from 'vitest'
import { TimeSeries } from './time-series.js'

describe('TimeSeries', () => {
  it('starts buckets at multiples of their width', () => {
    const series = new TimeSeries(1_234)
    series.at(1_234).offered += 1
    expect(series.width).toBe(10)
    expect(series.startAt).toBe(1_230)
  })

  it('has at most a thousand buckets for any duration and loses no counts', () => {
    const series = new TimeSeries(0)
    for (let second = 0; second < 86_400; second++) series.at(second * 1e6).offered += 1
    expect(series.buckets.length).toBeLessThanOrEqual(1_000)
    expect(series.buckets.length).toBeGreaterThan(150)
    expect(series.buckets.reduce((sum, bucket) => sum + bucket.offered, 0)).toBe(86_400)
    expect(series.width).toBe(120e6)
    expect(series.buckets[0]?.offered).toBe(120)
  })

  it('merges buckets at the boundaries of the wider bucket', () => {
    const series = new TimeSeries(90)
    series.at(90).offered += 1
    series.at(100).offered += 1
    series.widenTo(100)
    expect(series.startAt).toBe(0)
    expect(series.buckets.map((bucket) => bucket.offered)).toEqual([1, 1])
  })

  it('keeps the higher of two peaks', () => {
    const series = new TimeSeries(0)
    series.at(0).peak = 3
    series.at(10).peak = 5
    series.widenTo(100)
    expect(series.buckets.map((bucket) => bucket.peak)).toEqual([5])
  })

  it('accepts an arrival centuries later', () => {
    const series = new TimeSeries(0)
    series.at(2 ** 52).offered += 1
    expect(series.buckets.length).toBeLessThanOrEqual(1_000)
  })
})
