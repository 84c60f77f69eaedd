import { algorithmTraits } from '../../core/algorithm-traits.js'
import { durationText } from '../../core/band-label.js'
import {
  type AlgorithmName,
  algorithmNames,
  type Band,
  maxCapacity,
  maxFillTicks,
  maxLogCapacity,
  maxWindowTicks,
  minWindowTicks,
} from '../../core/rule.js'
import { durationForms, durationTicks } from '../../validation/duration.js'
import { type Fields, type Kind, oneSpelling } from '../../validation/fields.js'
import { identifier, oneOf, wholeNumber } from '../../validation/kinds.js'

/** The fields of a band. `algorithm` overrides the algorithm of the rule. */
export const bandFields: readonly string[] = [
  'label',
  'capacity',
  'refillTokens',
  'window',
  'refillSeconds',
  'windowSeconds',
  'refill',
  'algorithm',
]

/** A band in which missing and invalid fields are `undefined`. */
export type DraftBand = { readonly [K in keyof Band]: Band[K] | undefined }

/** Ignores case, `-` and `_`: `token-bucket`, `TOKEN_BUCKET` and `tokenBucket` are equal. */
export const algorithmKind: Kind<AlgorithmName> = {
  allowed: `one of ${algorithmNames.join(', ')}`,
  parse(value) {
    if (typeof value !== 'string' || value.length > 40) return undefined
    return algorithmNames.find((name) => normalized(name) === normalized(value))
  },
}
const normalized = (name: string): string => name.toUpperCase().replaceAll(/[-_]/g, '')

const capacityKind = wholeNumber(1, maxCapacity)
const refillKind = oneOf(['STEADY', 'INTERVAL'] as const)
const windowSpellings = ['window', 'refillSeconds', 'windowSeconds']

const windowKind = (forms: string, takesText: boolean): Kind<number> => ({
  allowed: `a duration from 1ms to 366d in whole microseconds (${forms})`,
  parse(value) {
    const ticks = typeof value === 'number' || takesText ? durationTicks(value) : undefined
    return ticks !== undefined && ticks >= minWindowTicks && ticks <= maxWindowTicks ? ticks : undefined
  },
})
const textWindow = windowKind(durationForms, true)
const secondsWindow = windowKind('a number of seconds', false)

/** Reads one band. `algorithm` comes from the band or its rule; it is `undefined` if invalid. */
export function readBand(fields: Fields, algorithm: AlgorithmName | undefined): DraftBand {
  const capacity = fields.require('capacity', capacityKind)
  const refillTokens = fields.has('refillTokens') ? fields.read('refillTokens', capacityKind) : capacity
  const windowTicks = readWindow(fields)
  const refill = fields.has('refill') ? fields.read('refill', refillKind) : 'STEADY'
  const band = { label: fields.read('label', identifier), algorithm, refill, capacity, refillTokens, windowTicks }
  checkAlgorithm(fields, band)
  return band
}

function readWindow(fields: Fields): number | undefined {
  const spelling = oneSpelling(fields, windowSpellings) ?? 'window'
  return fields.require(spelling, spelling === 'window' ? textWindow : secondsWindow)
}

/** Reports combinations of fields that the algorithm does not support. */
function checkAlgorithm(fields: Fields, band: DraftBand): void {
  const { algorithm, capacity, refillTokens, windowTicks } = band
  if (algorithm === undefined) return
  if (band.refill === 'INTERVAL' && algorithm !== 'TOKEN_BUCKET') {
    fields.wrong('refill', `must be STEADY with ${algorithm}; INTERVAL requires TOKEN_BUCKET`)
  }
  if (capacity === undefined) return
  if (algorithm === 'SLIDING_WINDOW_LOG' && capacity > maxLogCapacity) {
    fields.wrong('capacity', `must be at most ${maxLogCapacity} with SLIDING_WINDOW_LOG; received ${capacity}`)
  }
  if (refillTokens === undefined || windowTicks === undefined || !algorithmTraits[algorithm].isRefilled) return
  if (BigInt(capacity) * BigInt(windowTicks) <= BigInt(maxFillTicks) * BigInt(refillTokens)) return
  const rate = `${refillTokens} per ${durationText(windowTicks)}`
  fields.wrong(
    fields.has('refillTokens') ? 'refillTokens' : 'capacity',
    `must allow the bucket to refill within 142 years; received capacity ${capacity} at ${rate}. ` +
      'Use a smaller capacity, more refillTokens or a shorter window',
  )
}
