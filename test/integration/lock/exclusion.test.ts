/**
 * Mutual exclusion under process faults. `FLUXGATE_TEST_LOAD=full` runs the full size; `FLUXGATE_TEST_SEED` repeats the
 * faults of a run.
 */
import { describe, expect, it } from 'vitest'
import { randomSeed } from '../../fixtures/random-seed.js'
import { exclusionRun, type Findings } from './exclusion-run.js'

const visits = process.env.FLUXGATE_TEST_LOAD === 'full' ? 100_000 : 2_000
const seed = randomSeed()

function expectExclusion(found: Findings): void {
  const nothingWrong = { stale: 0, lost: 0 }
  expect(found).toMatchObject({ overlaps: 0, fencesBackwards: 0, ledger: nothingWrong, guarded: nothingWrong })
}

describe(`six processes that are stopped, oversleep and are killed (seed ${seed})`, () => {
  it(`have mutual exclusion in ${visits} critical sections, without stale writes`, { timeout: 3_600_000 }, async () => {
    const found = await exclusionRun({ visits, seed })
    console.log(JSON.stringify(found))
    expectExclusion(found)
    expect(found.ledger.lines).toBeGreaterThanOrEqual(visits / 2)
    expect(found.guarded.lines).toBeGreaterThanOrEqual(visits / 2)
  })

  it('violate it if the check is removed from the script, and the test detects that', {
    timeout: 3_600_000,
  }, async () => {
    const found = await exclusionRun({ visits, seed, withoutExclusion: true })
    expect(() => expectExclusion(found)).toThrow()
    expect(found.overlaps).toBeGreaterThan(0)
  })
})
