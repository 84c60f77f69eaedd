import { algorithmTraits } from '../../../core/algorithm-traits.js'
import { durationText } from '../../../core/band-label.js'
import {
  type AlgorithmName,
  algorithmNames,
  type Band,
  maxCapacity,
  maxFillTicks,
  maxLogCapacity,
  maxWindowTicks,
  minWindowTicks,
} from '../../../core/rule.js'
import { durationForms, durationTicks } from '../../../validation/duration.js'
import { type FieldValues, givenAlias } from '../../../validation/fields.js'
import { described, type JsonSchema, type Kind } from '../../../validation/kind.js'
import { durationSchema, identifier, oneOf, wholeNumber } from '../../../validation/kinds.js'
import { list, object } from '../../../validation/structures.js'

/** Ignores case, `-` and `_`: `token-bucket`, `TOKEN_BUCKET` and `tokenBucket` are equal. */
export const algorithmKind: Kind<AlgorithmName> = {
  ...oneOf(algorithmNames),
  parse(value) {
    if (typeof value !== 'string' || value.length > 40) return undefined
    return algorithmNames.find((name) => normalized(name) === normalized(value))
  },
}
const normalized = (name: string): string => name.toUpperCase().replaceAll(/[-_]/g, '')

/** A window, parsed to ticks. */
const windowKind = (forms: string, schema: JsonSchema): Kind<number> => ({
  allowed: `a duration from 1ms to 366d in whole microseconds (${forms})`,
  schema,
  parse(value) {
    const ticks = typeof value === 'number' || schema.anyOf !== undefined ? durationTicks(value) : undefined
    return ticks !== undefined && ticks >= minWindowTicks && ticks <= maxWindowTicks ? ticks : undefined
  },
})
const secondsWindow = windowKind('a number of seconds', {
  type: 'number',
  minimum: minWindowTicks / 1e6,
  maximum: maxWindowTicks / 1e6,
})

/** The fields of a band. `algorithm` overrides the algorithm of the rule. */
export const bandKinds = {
  label: described(identifier, 'Unique within the rule. Default: derived from capacity and window.'),
  capacity: wholeNumber(1, maxCapacity),
  refillTokens: described(wholeNumber(1, maxCapacity), 'Default: the capacity.'),
  window: described(
    windowKind(durationForms, durationSchema(minWindowTicks, maxWindowTicks)),
    'Window as a duration such as `1m` or `500ms`, or as a number of seconds.',
  ),
  refillSeconds: described(
    secondsWindow,
    'Window in seconds. Exactly one of `refillSeconds`, `window` and `windowSeconds` is required.',
  ),
  windowSeconds: described(secondsWindow, 'Alias of `refillSeconds`.'),
  refill: described(oneOf(['STEADY', 'INTERVAL'] as const), 'TOKEN_BUCKET only. Default: STEADY.'),
  algorithm: algorithmKind,
}

const { capacity: capacityKind, ...optionalKinds } = bandKinds
export const maxBands = 8
export const bandList = list(object({ capacity: capacityKind }, optionalKinds, { title: 'Band' }), { max: maxBands })

/** A band in which missing and invalid fields are `undefined`. */
export type DraftBand = { readonly [K in keyof Band]: Band[K] | undefined }

/** Reads one band. `algorithm` comes from the band or its rule; it is `undefined` if invalid. */
export function readBand(values: FieldValues, algorithm: AlgorithmName | undefined): DraftBand {
  const fields = values.as(bandKinds)
  const capacity = fields.require('capacity')
  const refillTokens = fields.has('refillTokens') ? fields.read('refillTokens') : capacity
  const windowTicks = fields.require(givenAlias(fields, ['window', 'refillSeconds', 'windowSeconds']) ?? 'window')
  const refill = fields.has('refill') ? fields.read('refill') : 'STEADY'
  const band = { label: fields.read('label'), algorithm, refill, capacity, refillTokens, windowTicks }
  checkAlgorithm(fields, band)
  return band
}

/** Reports combinations of fields that the algorithm does not support. */
function checkAlgorithm(fields: FieldValues, band: DraftBand): void {
  const { algorithm, capacity, refillTokens, windowTicks } = band
  if (algorithm === undefined) return
  if (band.refill === 'INTERVAL' && algorithm !== 'TOKEN_BUCKET') {
    fields.report('refill', `must be STEADY with ${algorithm}; INTERVAL requires TOKEN_BUCKET`)
  }
  if (capacity === undefined) return
  if (algorithm === 'SLIDING_WINDOW_LOG' && capacity > maxLogCapacity) {
    fields.report('capacity', `must be at most ${maxLogCapacity} with SLIDING_WINDOW_LOG; received ${capacity}`)
  }
  if (refillTokens === undefined || windowTicks === undefined || !algorithmTraits[algorithm].isRefilled) return
  if (BigInt(capacity) * BigInt(windowTicks) <= BigInt(maxFillTicks) * BigInt(refillTokens)) return
  const rate = `${refillTokens} per ${durationText(windowTicks)}`
  fields.report(
    fields.has('refillTokens') ? 'refillTokens' : 'capacity',
    `must allow the bucket to refill within 142 years; received capacity ${capacity} at ${rate}. ` +
      'Use a smaller capacity, more refillTokens or a shorter window',
  )
}
