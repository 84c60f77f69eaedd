import { bandLabel } from '../../core/band-label.js'
import type { Band } from '../../core/rule.js'
import { type Mistakes, placeOf, quoted } from '../../validation/issues.js'
import type { DraftBand } from './band-schema.js'

/**
 * Gives every band its label. A band's label is the name of its buckets, so two bands of a rule must never have the
 * same one, and one that is left out must not depend on the order of the bands.
 */
export function labelBands(drafts: readonly DraftBand[], path: string, mistakes: Mistakes): readonly Band[] {
  const unlabelled = drafts.filter(isComplete).filter((band) => band.label === undefined)
  const owners = new Map<string, number>()
  for (const [index, { label }] of drafts.entries()) {
    if (label === undefined) continue
    const owner = owners.get(label)
    if (owner === undefined) owners.set(label, index)
    else {
      const place = placeOf(`${path}[${index}]`, 'label')
      mistakes.add(place, `found ${quoted(label)}, a duplicate of bands[${owner}]; allowed: labels unique in the rule`)
    }
  }
  return drafts.flatMap((band, index) => {
    if (!isComplete(band)) return []
    if (band.label !== undefined) return [band as Band]
    const label = derivedLabel(band, unlabelled)
    const owner = owners.get(label)
    if (owner === undefined) owners.set(label, index)
    else {
      mistakes.add(
        `${path}[${index}]`,
        `a duplicate of bands[${owner}]: without a label of its own it is ${quoted(label)} too; allowed: one band per label`,
      )
    }
    return [{ ...band, label }]
  })
}

type Complete = { readonly [K in keyof Band]: K extends 'label' ? string | undefined : Band[K] }

function isComplete(band: DraftBand): band is Complete {
  const { algorithm, refill, capacity, refillTokens, windowTicks } = band
  return [algorithm, refill, capacity, refillTokens, windowTicks].every((value) => value !== undefined)
}

/** `100-per-1h`; the algorithm is added only where another unlabelled band differs in nothing else. */
function derivedLabel(band: Complete, unlabelled: readonly Complete[]): string {
  const label = bandLabel(band)
  const isAmbiguous = unlabelled.some((other) => bandLabel(other) === label && kindOf(other) !== kindOf(band))
  return isAmbiguous ? `${label}-${kindOf(band)}` : label
}

function kindOf({ algorithm, refill }: Complete): string {
  return `${algorithm}${refill === 'STEADY' ? '' : `-${refill}`}`.toLowerCase().replaceAll('_', '-')
}
