import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bound, findExcess, type Use } from './interval-bound.js'

const secondUs = 1_000_000
const bound = (more: Partial<Bound>): Bound => ({ capacity: 10, perUs: 10 / secondUs, losses: [], slackUs: 0, ...more })
const use = (startAt: number, permits = 1, endAt = startAt): Use => ({ startAt, endAt, permits })
/** `count` uses of one permit, `everyUs` apart. */
const uses = (count: number, everyUs: number, from = 0): Use[] =>
  Array.from({ length: count }, (_, index) => use(from + index * everyUs))

describe('findExcess of a refilled limit', () => {
  it('accepts a full bucket plus all refills, and reports one permit more', () => {
    const full = [use(0, 10), ...uses(20, secondUs / 10, secondUs / 10)]
    expect(findExcess(full, bound({}))).toBeUndefined()
    expect(findExcess([...full, use(2 * secondUs)], bound({}))).toMatchObject({ permits: 31, allowed: 30 })
  })

  it('reports the shortest interval with an excess', () => {
    const excess = findExcess([use(0, 10), ...uses(11, 0, 5 * secondUs)], bound({}))
    expect(excess).toMatchObject({ from: 5 * secondUs, to: 5 * secondUs, permits: 11, allowed: 10 })
  })

  it('counts a decision only in intervals that contain all of it', () => {
    const straddling = [use(0, 10), use(0, 1, secondUs / 10)]
    expect(findExcess(straddling, bound({}))).toBeUndefined()
    expect(findExcess([use(0, 10), use(0, 1, secondUs / 10 - 1)], bound({}))).toMatchObject({ permits: 11 })
  })

  it('allows one more capacity for each loss in the interval, and no more', () => {
    const losses = [{ from: 100, to: 200 }]
    expect(findExcess([use(0, 10), use(300, 10)], bound({ perUs: 0, losses }))).toBeUndefined()
    expect(findExcess([use(0, 10), use(300, 11)], bound({ perUs: 0, losses }))).toMatchObject({ permits: 11 })
    expect(findExcess([use(0, 10), use(50, 1), use(300, 10)], bound({ perUs: 0, losses }))).toMatchObject({
      permits: 11,
    })
    expect(findExcess([use(0, 10), use(150, 1), use(300, 10)], bound({ perUs: 0, losses }))).toMatchObject({
      permits: 21,
    })
  })
})

describe('findExcess of a sliding window', () => {
  const sliding = bound({ perUs: 0, windowUs: secondUs })

  it('allows the capacity again when the window has passed, and not a microsecond before', () => {
    expect(findExcess([use(0, 10), use(secondUs, 10)], sliding)).toBeUndefined()
    expect(findExcess([use(0, 10), use(secondUs - 1)], sliding)).toMatchObject({ permits: 11, allowed: 10 })
  })
})

describe('findExcess', () => {
  it('agrees with a search over all pairs of instants', () => {
    const arbitraryUse = fc.record({
      startAt: fc.integer({ min: 0, max: 60 }),
      tookUs: fc.integer({ min: 0, max: 8 }),
      permits: fc.integer({ min: 1, max: 3 }),
    })
    const arbitraryLoss = fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 10 }))
    const arbitraryBound = fc.record({
      capacity: fc.integer({ min: 1, max: 8 }),
      perUs: fc.constantFrom(0, 0.125, 0.5),
      windowUs: fc.constantFrom(undefined, 10, 25),
      losses: fc.array(arbitraryLoss, { maxLength: 2 }),
    })
    fc.assert(
      fc.property(fc.array(arbitraryUse, { maxLength: 25 }), arbitraryBound, (made, { windowUs, ...rest }) => {
        const all = made.map(({ startAt, tookUs, permits }) => use(startAt, permits, startAt + tookUs))
        const losses = rest.losses.map(([from, lasted]) => ({ from, to: from + lasted }))
        const given: Bound = { ...rest, losses, slackUs: 0, ...(windowUs !== undefined && { windowUs }) }
        expect(findExcess(all, given) !== undefined).toBe(hasExcess(all, given))
      }),
    )
  })
})

/** The definition, pair by pair. */
function hasExcess(all: readonly Use[], { capacity, perUs, windowUs, losses }: Bound): boolean {
  return all.some(({ startAt: from }) =>
    all.some(({ endAt: to }) => {
      if (to < from || (windowUs !== undefined && to - from >= windowUs)) return false
      const permits = all
        .filter(({ startAt, endAt }) => startAt >= from && endAt <= to)
        .reduce((sum, one) => sum + one.permits, 0)
      const during = losses.filter((loss) => loss.from <= to && loss.to >= from)
      const twice = during.reduce((sum, loss) => sum + Math.min(to, loss.to) - Math.max(from, loss.from), 0)
      return permits > capacity * (1 + during.length) + perUs * (to - from + twice) + 1e-6
    }),
  )
}
