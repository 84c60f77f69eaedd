import { expect, it } from 'vitest'
import { type BucketGroup, copyResult, type Demand } from '../core/bucket-store.js'
import { algorithmNames, type Band } from '../core/rule.js'
import { randomBand, randomPause, seededRandom } from '../testing/history.js'
import { manualClock } from '../testing/manual-clock.js'
import { memoryStore } from './memory.js'

const groupOf = (bands: readonly Band[]): BucketGroup => ({
  ruleSetId: 'set',
  ruleId: 'rule',
  generation: '1',
  permits: 1,
  bands,
})

it.each(algorithmNames)('says by the short way what the long one says: %s', (name) => {
  for (let seed = 1; seed <= 300; seed++) live(seed)

  function live(seed: number): void {
    const random = seededRandom(seed)
    const clock = manualClock(1_790_000_000_000)
    const [short, long] = [memoryStore({ clock }), memoryStore({ clock })]
    const choice = { algorithms: [name], maxCapacity: seed % 2 ? 20 : 1_000_000 }
    let group = groupOf(
      Array.from({ length: 1 + (seed % 5 === 0 ? 1 : 0) }, (_, i) => randomBand(random, `${i}`, choice)),
    )
    for (let step = 0; step < 60; step++) {
      const band = group.bands[0] as Band
      clock.advance(randomPause(random, band) / 1000)
      if (random() < 0.05)
        group = groupOf(group.bands.map((band) => ({ ...randomBand(random, band.label, choice), refill: band.refill })))
      const permits = random() < 0.7 ? 1 : 1 + Math.floor(random() * band.capacity)
      if (random() < 0.1) for (const store of [short, long]) void store.refund([{ group, key: 'a', permits }])
      const patience = random() < 0.2 ? Math.floor(random() * band.windowTicks) : 0
      const demand: Demand = { group, key: 'a', permits, patience, policy: 'REJECT', shadow: random() < 0.1 }
      const expected = copyResult([demand], long.chargeSync([demand], false))
      const actual = copyResult([demand], short.chargeOne(demand, 'a', permits))
      expect(actual, `seed ${seed}, step ${step}`).toEqual(expected)
    }
  }
})
