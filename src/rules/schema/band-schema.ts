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

/** What a band may say. `algorithm` overrides the rule's. */
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

/** A band as far as it could be read: what is missing or mistaken is `undefined`. */
export type DraftBand = { readonly [K in keyof Band]: Band[K] | undefined }

/** Any case, with or without `-` and `_`: `token-bucket`, `TOKEN_BUCKET`, `tokenBucket`. */
export const algorithmKind: Kind<AlgorithmName> = {
  allowed: algorithmNames.join(', '),
  parse(value) {
    if (typeof value !== 'string' || value.length > 40) return undefined
    return algorithmNames.find((name) => plain(name) === plain(value))
  },
}
const plain = (name: string): string => name.toUpperCase().replaceAll(/[-_]/g, '')

const capacityKind = wholeNumber(1, maxCapacity)
const refillKind = oneOf(['STEADY', 'INTERVAL'] as const)
const windowSpellings = ['window', 'refillSeconds', 'windowSeconds']

const windowKind = (forms: string, takesText: boolean): Kind<number> => ({
  allowed: `${forms}, from 1 ms to 366 days in whole microseconds`,
  parse(value) {
    const ticks = typeof value === 'number' || takesText ? durationTicks(value) : undefined
    return ticks !== undefined && ticks >= minWindowTicks && ticks <= maxWindowTicks ? ticks : undefined
  },
})
const textWindow = windowKind(durationForms, true)
const secondsWindow = windowKind('a number of seconds', false)

/** Reads one band. `algorithm` is its own or its rule's, `undefined` when that one is mistaken. */
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

/** What fits one algorithm and not another. */
function checkAlgorithm(fields: Fields, band: DraftBand): void {
  const { algorithm, capacity, refillTokens, windowTicks } = band
  if (algorithm === undefined) return
  if (band.refill === 'INTERVAL' && algorithm !== 'TOKEN_BUCKET') {
    fields.wrong('refill', `found INTERVAL on ${algorithm}; allowed: INTERVAL on TOKEN_BUCKET only`)
  }
  if (capacity === undefined) return
  if (algorithm === 'SLIDING_WINDOW_LOG' && capacity > maxLogCapacity) {
    fields.wrong('capacity', `found ${capacity}; allowed: 1 to ${maxLogCapacity} on SLIDING_WINDOW_LOG`)
  }
  if (refillTokens === undefined || windowTicks === undefined || !algorithmTraits[algorithm].isRefilled) return
  if (BigInt(capacity) * BigInt(windowTicks) <= BigInt(maxFillTicks) * BigInt(refillTokens)) return
  const rate = `${refillTokens} per ${durationText(windowTicks)}`
  fields.wrong(
    fields.has('refillTokens') ? 'refillTokens' : 'capacity',
    `a band that cannot be exact: ${capacity} at ${rate} take longer than 142 years to fill; ` +
      'allowed: a smaller capacity, more refillTokens or a shorter window',
  )
}
