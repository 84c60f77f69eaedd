import assert from 'node:assert/strict'
import type { BandResult, BucketStore, Charge, ChargeResult } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import { seededRandom } from '../../core/seeded-random.js'
import { chargeOf, group, second } from '../fixtures.js'
import type { ManualClock } from '../manual-clock.js'
import { referenceStore } from '../models/reference-store.js'
import { allow, bandOf, bookOf, deny, limit, nameOf, overridable } from './fixtures.js'

const bandsOf: Readonly<Record<string, readonly Band[]>> = {
  ann: [bandOf(3, { windowTicks: 700_000 })],
  bob: [bandOf(5, { algorithm: 'FIXED_WINDOW' }), bandOf(2, { algorithm: 'SLIDING_WINDOW_LOG', windowTicks: 300_000 })],
}
const keys = ['ann', 'bob', 'carol', 'dave', 'eve']

/** Compares keys with overrides of every kind and one without, in batched decisions over several rules. */
export async function compareOverridden(store: BucketStore, clock: ManualClock, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const model = referenceStore({ clock })
  const rule = overridable('random', [bandOf(4, { windowTicks: 500_000 })])
  const other = group('plain', [bandOf(6, { algorithm: 'LEAKY_BUCKET' })])
  const overrides = bookOf(store)
  for (const [key, bands] of Object.entries(bandsOf)) await overrides.put(nameOf(rule, key), limit(...bands))
  await overrides.put(nameOf(rule, 'carol'), allow)
  await overrides.put(nameOf(rule, 'dave'), deny)

  const randomCharges = (): Charge[] => {
    const key = pick(keys)
    const permits = 1 + Math.floor(random() * 3)
    const overridden = chargeOf(rule, key, {
      permits,
      shadow: random() < 0.2,
      maxWaitTicks: random() < 0.2 ? second : 0,
    })
    return random() < 0.5 ? [overridden] : [chargeOf(other, key, { permits }), overridden]
  }
  for (let round = 0; round < 60; round++) {
    const decisions = Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
      charges: randomCharges(),
      peek: random() < 0.2,
    }))
    const found = await Promise.all(decisions.map(({ charges, peek }) => store.charge(charges, peek)))
    for (const [i, { charges, peek }] of decisions.entries()) {
      const expected = await model.charge(charges.flatMap(asRule), peek)
      const where = `seed ${seed}, round ${round}, decision ${i}`
      const result = found[i] as ChargeResult
      assert.equal(result.granted, expected.granted, where)
      // A cached rejection does not include the decisions that are in flight.
      if (!result.fromCache)
        assert.deepEqual(comparedBands(charges, result), comparedBands(charges.flatMap(asRule), expected), where)
    }
    if (random() < 0.3) {
      const refund = { group: rule, key: pick(keys), permits: 1 }
      await store.refund([refund])
      await model.refund(asRule(chargeOf(rule, refund.key)).map(({ group, key }) => ({ group, key, permits: 1 })))
    }
    clock.advance(Math.floor(random() * 400_000) / 1_000)
  }
}

const impossible = group('denied', [bandOf(1)])

/** The equivalent charges without overrides: of another rule, none, or of a rule that always rejects. */
function asRule(charge: Charge): Charge[] {
  if (!charge.group.hasOverrides || charge.key === 'eve')
    return [{ ...charge, group: { ...charge.group, hasOverrides: false } }]
  if (charge.key === 'carol') return []
  if (charge.key === 'dave') return [{ ...charge, group: impossible, permits: 2 }]
  return [{ ...charge, group: group(`own-${charge.key}`, bandsOf[charge.key] ?? []) }]
}

/** The results of all bands, except for those that represent a denial. */
function comparedBands(
  charges: readonly Charge[],
  { bands, applied = charges }: ChargeResult,
): (BandResult | undefined)[] {
  let index = 0
  return applied.flatMap(({ group }) => {
    const results = group.bands.map(() => bands[index++])
    return group.listed === undefined && group !== impossible ? results : []
  })
}
