import { bandLabel } from '../../../core/band-label.js'
import type { Band } from '../../../core/rule.js'
import { placeOf, quoted, type ValidationIssues } from '../../../validation/issues.js'
import type { DraftBand } from './band-schema.js'

/**
 * Assigns a label to every band. Bucket keys contain the label, so labels are unique within a rule, and a default label
 * does not depend on the order of the bands.
 */
export function labelBands(drafts: readonly DraftBand[], path: string, issues: ValidationIssues): readonly Band[] {
  const unlabelled = drafts.filter(isComplete).filter((band) => band.label === undefined)
  const owners = new Map<string, number>()
  for (const [index, { label }] of drafts.entries()) {
    if (label === undefined) continue
    const owner = owners.get(label)
    if (owner === undefined) owners.set(label, index)
    else {
      const place = placeOf(`${path}[${index}]`, 'label')
      issues.add(place, `must be unique in the rule; received ${quoted(label)}, which bands[${owner}] already has`)
    }
  }
  return drafts.flatMap((band, index) => {
    if (!isComplete(band)) return []
    if (band.label !== undefined) return [band as Band]
    const label = derivedLabel(band, unlabelled)
    const owner = owners.get(label)
    if (owner === undefined) owners.set(label, index)
    else {
      issues.add(
        `${path}[${index}]`,
        `must have a label of its own: bands[${owner}] already has the default label ${quoted(label)}`,
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

/** `100-per-1h`. The algorithm is appended only if another unlabelled band has the same capacity and window but another algorithm. */
function derivedLabel(band: Complete, unlabelled: readonly Complete[]): string {
  const label = bandLabel(band)
  const isAmbiguous = unlabelled.some((other) => bandLabel(other) === label && kindOf(other) !== kindOf(band))
  return isAmbiguous ? `${label}-${kindOf(band)}` : label
}

function kindOf({ algorithm, refill }: Complete): string {
  return `${algorithm}${refill === 'STEADY' ? '' : `-${refill}`}`.toLowerCase().replaceAll('_', '-')
}
