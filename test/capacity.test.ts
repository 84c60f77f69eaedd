/** Compares the capacity model with a simulation in virtual time. Costs and seeds are fixed, so the machine does not matter. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { assumptions, plan, sharesOf } from '../bench/capacity/model.mjs'
import { readCosts, scenarios, withTables } from '../bench/capacity/page.mjs'
import { simulateRegions, splitQuota } from '../bench/capacity/regions.mjs'
import { simulate } from '../bench/capacity/simulate.mjs'

const costs = {
  date: '',
  machine: '',
  exact: { processUs: 4, redisUs: 3 },
  exactThreeBands: { processUs: 6, redisUs: 9 },
  leased: { processUs: 1, redisUs: 0.3 },
  gatewayUs: 50,
  bytesPerKey: 100,
}

const relativeError = (value: number, expected: number) => Math.abs(value / expected - 1)

describe('capacity model', () => {
  it('plans a million EXACT decisions per second', () => {
    const { processes, primaries } = plan({ perSecond: 1_000_000, cost: costs.exact }, assumptions)
    // 4 s and 3 s of CPU time per second, at 60 %; Redis with a skew of 1.1.
    expect({ processes, primaries }).toEqual({ processes: 7, primaries: 6 })
  })

  it('never plans more than the given utilisation', () => {
    for (const perSecond of [1, 1_000, 99_999, 123_456, 1_000_000, 7_654_321]) {
      const planned = plan({ perSecond, cost: costs.exactThreeBands }, assumptions)
      expect(planned.processUtilisation).toBeLessThanOrEqual(0.6)
      expect(planned.redisUtilisation).toBeLessThanOrEqual(0.6)
    }
  })

  it('gives the busiest primary its skew and the others equal shares', () => {
    expect(sharesOf(1, 1.1)).toEqual([1])
    const [busiest, ...others] = sharesOf(4, 1.2)
    expect(busiest).toBeCloseTo(0.3)
    for (const share of others) expect(share).toBeCloseTo(0.7 / 3)
  })

  it.each(scenarios(costs).map(({ name, demand }) => ({ name, demand })))(
    'agrees with the simulation: $name, $demand.perSecond per second (utilisation 5 %, mean latency 10 %)',
    ({ demand }) => {
      const planned = plan(demand, assumptions)
      const simulated = simulate(demand, assumptions, planned, { decisions: 200_000, seed: 7 })
      expect(relativeError(simulated.processUtilisation, planned.processUtilisation)).toBeLessThan(0.05)
      expect(relativeError(simulated.redisUtilisation, planned.redisUtilisation)).toBeLessThan(0.05)
      expect(relativeError(simulated.meanUs, planned.meanUs)).toBeLessThan(0.1)
    },
    60_000,
  )

  it('repeats a simulation exactly with the same seed', () => {
    const demand = { perSecond: 100_000, cost: costs.exact }
    const run = (seed: number) => simulate(demand, assumptions, plan(demand, assumptions), { decisions: 20_000, seed })
    expect(run(1)).toEqual(run(1))
    expect(run(2)).not.toEqual(run(1))
  })
})

describe('split quotas', () => {
  const regions = (demands: readonly number[]) =>
    [0.5, 0.3, 0.2].map((share, i) => ({ name: `region ${i}`, share, demand: demands[i] ?? 0 }))

  it.each([
    { demands: [450, 270, 180] },
    { demands: [450, 540, 180] },
    { demands: [800, 600, 400] },
    { demands: [0, 600, 400] },
  ])(
    'allow what the model predicts within 2 %, and never more than the global limit: $demands per second',
    async ({ demands }) => {
      const predicted = splitQuota(1000, regions(demands))
      const simulated = await simulateRegions(1000, regions(demands))
      expect(relativeError(simulated.perSecond, predicted.perSecond)).toBeLessThan(0.02)
      expect(simulated.most).toBeLessThanOrEqual(1000)
    },
  )
})

it('docs/guide/capacity.md shows the tables of bench/costs.json', async () => {
  const page = readFileSync(new URL('../docs/guide/capacity.md', import.meta.url), 'utf8')
  expect(await withTables(page, readCosts())).toBe(page)
}, 60_000)
