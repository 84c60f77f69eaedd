import assert from 'node:assert/strict'
import type { BandResult, BucketStore, ChargeResult, Demand } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import { demand, group, second } from '../demands.js'
import { seededRandom } from '../history.js'
import type { ManualClock } from '../manual-clock.js'
import { referenceStore } from '../models/reference-store.js'
import { allow, bandOf, bookOf, deny, limit, nameOf, overridable } from './override-bed.js'

const bandsOf: Readonly<Record<string, readonly Band[]>> = {
  ann: [bandOf(3, { windowTicks: 700_000 })],
  bob: [bandOf(5, { algorithm: 'FIXED_WINDOW' }), bandOf(2, { algorithm: 'SLIDING_WINDOW_LOG', windowTicks: 300_000 })],
}
const identities = ['ann', 'bob', 'carol', 'dave', 'eve']

/** Identities with overrides of every kind beside one without, in decisions of several rules that share calls. */
export async function compareOverridden(store: BucketStore, clock: ManualClock, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const model = referenceStore({ clock })
  const rule = overridable('random', [bandOf(4, { windowTicks: 500_000 })])
  const other = group('plain', [bandOf(6, { algorithm: 'LEAKY_BUCKET' })])
  const book = bookOf(store)
  for (const [key, bands] of Object.entries(bandsOf)) await book.put(nameOf(rule, key), limit(...bands))
  await book.put(nameOf(rule, 'carol'), allow)
  await book.put(nameOf(rule, 'dave'), deny)

  const randomDemands = (): Demand[] => {
    const key = pick(identities)
    const permits = 1 + Math.floor(random() * 3)
    const overridden = demand(rule, key, { permits, shadow: random() < 0.2, patience: random() < 0.2 ? second : 0 })
    return random() < 0.5 ? [overridden] : [demand(other, key, { permits }), overridden]
  }
  for (let round = 0; round < 60; round++) {
    const decisions = Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
      demands: randomDemands(),
      peek: random() < 0.2,
    }))
    const found = await Promise.all(decisions.map(({ demands, peek }) => store.charge(demands, peek)))
    for (const [i, { demands, peek }] of decisions.entries()) {
      const expected = await model.charge(demands.flatMap(asRule), peek)
      const place = `seed ${seed}, round ${round}, decision ${i}`
      const result = found[i] as ChargeResult
      assert.equal(result.granted, expected.granted, place)
      // What is refused without asking is told as it was known then, without what is under way meanwhile.
      if (!result.isUnasked)
        assert.deepEqual(counted(demands, result), counted(demands.flatMap(asRule), expected), place)
    }
    if (random() < 0.3) {
      const refund = { group: rule, key: pick(identities), permits: 1 }
      await store.refund([refund])
      await model.refund(asRule(demand(rule, refund.key)).map(({ group, key }) => ({ group, key, permits: 1 })))
    }
    clock.advance(Math.floor(random() * 400_000) / 1_000)
  }
}

const impossible = group('denied', [bandOf(1)])

/** The same without overrides: other rules, none at all, or one that can never be satisfied. */
function asRule(asked: Demand): Demand[] {
  if (!asked.group.hasOverrides || asked.key === 'eve')
    return [{ ...asked, group: { ...asked.group, hasOverrides: false } }]
  if (asked.key === 'carol') return []
  if (asked.key === 'dave') return [{ ...asked, group: impossible, permits: 2 }]
  return [{ ...asked, group: group(`own-${asked.key}`, bandsOf[asked.key] ?? []) }]
}

/** What was said of bands that count, and not of one that stands for a denial. */
function counted(demands: readonly Demand[], { bands, applied = demands }: ChargeResult): (BandResult | undefined)[] {
  let index = 0
  return applied.flatMap(({ group }) => {
    const said = group.bands.map(() => bands[index++])
    return group.listed === undefined && group !== impossible ? said : []
  })
}
