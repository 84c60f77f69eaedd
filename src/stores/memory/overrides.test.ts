import { expect, it } from 'vitest'
import { copyResult } from '../../core/bucket-store.js'
import { algorithmNames, type Band } from '../../core/rule.js'
import { seededRandom } from '../../core/seeded-random.js'
import { chargeOf, group } from '../../testing/fixtures.js'
import { manualClock } from '../../testing/manual-clock.js'
import { randomBand, randomPause } from '../../testing/random-charges.js'
import { memoryStore } from './memory-store.js'

it.each(algorithmNames)('decides the same whether or not other keys have overrides: %s', async (name) => {
  for (let seed = 1; seed <= 300; seed++) await compareStores(seed)

  async function compareStores(seed: number): Promise<void> {
    const random = seededRandom(seed)
    const clock = manualClock(1_790_000_000_000)
    const [plain, overridden] = [memoryStore({ clock }), memoryStore({ clock })]
    const choice = { algorithms: [name], maxCapacity: seed % 2 ? 20 : 1_000_000 }
    let rule = group(
      'rule',
      Array.from({ length: 1 + (seed % 5 === 0 ? 1 : 0) }, (_, i) => randomBand(random, `${i}`, choice)),
    )
    const { ruleSetId, ruleId } = rule
    const terms = { action: 'DENY', bands: [], expiresAtMs: undefined, note: undefined } as const
    await overridden.overrides?.put({ ruleSetId, ruleId, key: 'b', isRange: false }, terms)
    for (let step = 0; step < 60; step++) {
      const band = rule.bands[0] as Band
      clock.advance(randomPause(random, band) / 1000)
      if (random() < 0.05)
        rule = group(
          'rule',
          rule.bands.map((band) => ({ ...randomBand(random, band.label, choice), refill: band.refill })),
        )
      const permits = random() < 0.7 ? 1 : 1 + Math.floor(random() * band.capacity)
      if (random() < 0.1)
        for (const store of [plain, overridden]) void store.refund([{ group: rule, key: 'a', permits }])
      const maxWaitTicks = random() < 0.2 ? Math.floor(random() * band.windowTicks) : 0
      const charge = chargeOf(rule, 'a', { permits, maxWaitTicks, shadow: random() < 0.1 })
      const withOverrides = { ...charge, group: { ...rule, hasOverrides: true } }
      const expected = copyResult([charge], overridden.chargeSync([withOverrides], false))
      const actual = copyResult([charge], plain.chargeSync([charge], false))
      expect(actual, `seed ${seed}, step ${step}`).toEqual(expected)
    }
  }
})
