import { describe, expect, it } from 'vitest'
import { type AlgorithmName, algorithmNames, type Band } from '../core/rule.js'
import { seededRandom } from '../core/seeded-random.js'
import { simulateBands } from './simulate-bands.js'
import { burst, poisson, uniform } from './traffic.js'

const second = 1_000_000

function band(algorithm: AlgorithmName, capacity = 10, windowTicks = second): Band {
  return { label: algorithm, algorithm, refill: 'STEADY', capacity, refillTokens: capacity, windowTicks }
}

/** Bursts of 20 requests around the start of a second: ten before it and ten after it. */
const acrossEdges = () => burst({ size: 20, every: 2 * second, spread: 200_000 }, { from: 900_000, until: 6 * second })

describe('simulateBands', () => {
  it('shows that a fixed window allows 2C around a boundary and sliding windows allow C', async () => {
    const { offered, runs } = await simulateBands(
      algorithmNames.filter((name) => name !== 'CONCURRENCY').map((name) => band(name)),
      acrossEdges(),
    )
    expect(offered).toMatchObject({ offered: 60, mostInAnyWindow: 20 })
    const most = Object.fromEntries(runs.map((run) => [run.band.algorithm, run.mostInAnyWindow]))
    expect(most).toEqual({
      TOKEN_BUCKET: 11,
      LEAKY_BUCKET: 10,
      FIXED_WINDOW: 20,
      SLIDING_WINDOW_LOG: 10,
      SLIDING_WINDOW_COUNTER: 10,
    })
    const allowed = Object.fromEntries(runs.map((run) => [run.band.algorithm, run.allowed]))
    expect(allowed).toMatchObject({ FIXED_WINDOW: 60, SLIDING_WINDOW_LOG: 30 })
  })

  it('shows that a leaky bucket spaces releases evenly and a token bucket does not', async () => {
    const arrivals = burst({ size: 10, every: 10 * second, spread: 0 }, { from: 0, until: second })
    const { runs } = await simulateBands([band('LEAKY_BUCKET'), band('TOKEN_BUCKET')], arrivals)
    expect(runs[0]).toMatchObject({
      allowed: 10,
      smallestGapMs: 100,
      longestGapMs: 100,
      maxDelayMs: 900,
      meanDelayMs: 450,
    })
    expect(runs[0]?.delayed).toBe(9)
    expect(runs[1]).toMatchObject({ allowed: 10, smallestGapMs: 0, longestGapMs: 0, maxDelayMs: 0, delayed: 0 })
  })

  it('counts releases of a leaky bucket at their release time', async () => {
    const { runs, bucketMs } = await simulateBands(
      [band('LEAKY_BUCKET')],
      burst({ size: 10, every: 10 * second, spread: 0 }, { from: 0, until: second }),
    )
    const buckets = runs[0]?.buckets ?? []
    const tenth = Math.round(100 / bucketMs)
    expect(buckets[0]).toMatchObject({ offered: 10, allowed: 10, delayed: 9, released: 1 })
    expect(buckets[tenth]).toMatchObject({ offered: 0, released: 1, peak: 2 })
    expect(buckets[9 * tenth]).toMatchObject({ released: 1, peak: 10 })
  })

  it('allows a client that sends 11/s under a limit of 10/s its 10/s and the first burst', async () => {
    const { runs } = await simulateBands([band('TOKEN_BUCKET')], uniform(11, { from: 0, until: 100 * second }))
    // 10/s for 100 s, plus the initial ten permits, minus the one that is not yet refilled at the end.
    expect(runs[0]).toMatchObject({ offered: 1_100, allowed: 1_009, rejected: 91 })
  })

  it('rejects no request of an uneven client at 96/min under 100/min', async () => {
    const arrivals = burst({ size: 8, every: 5 * second, spread: second }, { from: 0, until: 600 * second })
    const { runs } = await simulateBands([band('TOKEN_BUCKET', 100, 60 * second)], arrivals)
    expect(runs[0]).toMatchObject({ offered: 960, rejected: 0 })
  })

  it('agrees with a brute-force count of the maximum in any window (seed 3)', async () => {
    const arrivals = [...poisson(40, { from: 0, until: 20 * second }, seededRandom(3))]
    const { offered, runs } = await simulateBands([band('SLIDING_WINDOW_LOG')], arrivals)
    const counts = arrivals.map(({ at }) => arrivals.filter((other) => other.at > at - second && other.at <= at).length)
    expect(offered.mostInAnyWindow).toBe(Math.max(...counts))
    expect(runs[0]?.mostInAnyWindow).toBe(10)
  })

  it('uses the same buckets for all bands, from the requested start to the requested end', async () => {
    const simulation = await simulateBands([band('LEAKY_BUCKET'), band('FIXED_WINDOW')], acrossEdges(), {
      startAt: 0,
      until: 8 * second,
    })
    expect(simulation).toMatchObject({ startAtMs: 0, bucketMs: 10, windowMs: 1_000 })
    for (const { buckets } of [simulation.offered, ...simulation.runs]) expect(buckets).toHaveLength(800)
    for (const { buckets, offered, allowed } of simulation.runs) {
      expect(buckets.reduce((sum, bucket) => sum + bucket.offered, 0)).toBe(offered)
      expect(buckets.reduce((sum, bucket) => sum + bucket.released, 0)).toBe(allowed)
    }
  })

  it('reports empty results for no traffic', async () => {
    const { offered, runs } = await simulateBands([band('TOKEN_BUCKET')], [])
    expect(offered.offered).toBe(0)
    expect(runs[0]).toMatchObject({
      allowed: 0,
      smallestGapMs: null,
      longestGapMs: null,
      meanDelayMs: 0,
      maxDelayMs: 0,
    })
  })

  it('limits requests in progress under CONCURRENCY, and counts them under all algorithms', async () => {
    // Ten requests per second of 500 ms each: five in progress.
    const arrivals = () => uniform(10, { from: 0, until: 10 * second })
    const options = { window: second, serviceTime: () => second / 2 }
    const concurrency = { ...band('CONCURRENCY', 3), windowTicks: 366 * 86_400 * second }
    const { offered, runs } = await simulateBands([band('TOKEN_BUCKET'), concurrency], arrivals(), options)
    expect(offered).toMatchObject({ offered: 100, mostInProgress: 5 })
    expect(runs[0]).toMatchObject({ rejected: 0, mostInProgress: 5 })
    // Three requests are allowed in every 500 ms, in which five arrive.
    expect(runs[1]).toMatchObject({ allowed: 60, rejected: 40, mostInProgress: 3, mostInAnyWindow: 6 })
    expect(Math.max(...(runs[1]?.buckets ?? []).map(({ peak }) => peak))).toBe(3)
  })

  it('agrees with a model of a server with ten slots and random service times', async () => {
    const random = seededRandom(3)
    const arrivals = Array.from(poisson(100, { from: 0, until: 60 * second }, random), ({ at }) => ({
      at,
      duration: 1 + Math.floor(200_000 * random()),
    }))
    let ends: number[] = []
    let allowed = 0
    for (const { at, duration } of arrivals) {
      ends = ends.filter((end) => end > at)
      if (ends.length < 10) {
        ends.push(at + duration)
        allowed += 1
      }
    }
    const concurrency = { ...band('CONCURRENCY', 10), windowTicks: 366 * 86_400 * second }
    const { runs } = await simulateBands([concurrency], arrivals)
    expect(runs[0]).toMatchObject({ allowed, rejected: arrivals.length - allowed, mostInProgress: 10 })
    expect(allowed).toBeLessThan(arrivals.length)
  })
})
