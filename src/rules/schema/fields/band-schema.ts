import { algorithmTraits } from '../../../core/algorithm-traits.js'
import { defaultRefill, durationText } from '../../../core/band-label.js'
import { nominalTicks } from '../../../core/calendar/calendar.js'
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
import { unitForms } from '../../../validation/duration.js'
import { type FieldValues, givenAlias } from '../../../validation/fields.js'
import { describeValue } from '../../../validation/issues.js'
import { described, type Kind, wrongValue } from '../../../validation/kind.js'
import { identifier, oneOf, unitSchema, wholeNumber } from '../../../validation/kinds.js'
import { list, object } from '../../../validation/structures.js'
import { calendarKinds, checkNoCalendar, readCalendar } from './calendar-schema.js'
import { isWindow, maxHoldKind, parseWindow, readMaxHold } from './hold-schema.js'

/** Ignores case, `-` and `_`: `token-bucket`, `TOKEN_BUCKET` and `tokenBucket` are equal. */
export const algorithmKind: Kind<AlgorithmName> = {
  ...oneOf(algorithmNames),
  parse(value) {
    if (typeof value !== 'string' || value.length > 40) return undefined
    return algorithmNames.find((name) => normalized(name) === normalized(value))
  },
}
const normalized = (name: string): string => name.toUpperCase().replaceAll(/[-_]/g, '')

/** A window with a unit, parsed to ticks. A bare number is ambiguous: half of all users mean milliseconds. */
const windowKind: Kind<number> = {
  allowed: `a duration from 1ms to 366d in whole microseconds (${unitForms})`,
  schema: unitSchema,
  parse: (value) => (typeof value === 'string' ? parseWindow(value) : undefined),
  read(value, path, issues) {
    const ticks = windowKind.parse(value)
    if (ticks === undefined)
      issues.add(path, isNumeric(value) ? withoutUnit(value) : wrongValue(value, windowKind.allowed))
    return ticks
  },
}

const isNumeric = (value: unknown): value is number | string =>
  typeof value === 'number' || (typeof value === 'string' && /^\d+(\.\d+)?$/.test(value))

/** Windows of a second or more are common, so the suggestion treats a number of at least 1000 as milliseconds. */
function withoutUnit(value: number | string): string {
  const ticks = Number(value) * (Number(value) >= 1_000 ? 1_000 : 1_000_000)
  const text = ticks % 1_000_000 === 0 ? `${ticks / 1_000_000}s` : `${ticks / 1_000}ms`
  const spellings = `window: ${text}, windowMs: ${ticks / 1_000} or windowSeconds: ${ticks / 1_000_000}`
  const message = `must have a unit; received ${describeValue(value)}`
  return isWindow(ticks) ? `${message}. Use one of ${spellings}` : message
}

/** A window as a number of `unit`, parsed to ticks. */
function numberWindow(unit: 's' | 'ms'): Kind<number> {
  const perUnit = unit === 's' ? 1_000_000 : 1_000
  return {
    allowed: `a ${unit === 's' ? 'number of seconds' : 'number of milliseconds'} from 1ms to 366d in whole microseconds`,
    schema: { type: 'number', minimum: minWindowTicks / perUnit, maximum: maxWindowTicks / perUnit },
    parse: (value) => (typeof value === 'number' ? parseWindow(`${value}${unit}`) : undefined),
  }
}
const secondsWindow = numberWindow('s')

/** The fields of a band. `algorithm` overrides the algorithm of the rule. */
export const bandKinds = {
  label: described(identifier, 'Unique within the rule. Default: derived from capacity and window.'),
  capacity: described(wholeNumber(0, maxCapacity), '0 rejects every request.'),
  refillTokens: described(wholeNumber(1, maxCapacity), 'Default: the capacity, or 1 if it is 0.'),
  window: described(
    windowKind,
    'Window with a unit, such as `1m` or `500ms`. Exactly one of `window`, `windowMs`, `windowSeconds`, `refillSeconds` and `calendar` is required, except with CONCURRENCY.',
  ),
  windowMs: described(numberWindow('ms'), 'Window in milliseconds.'),
  windowSeconds: described(secondsWindow, 'Window in seconds.'),
  refillSeconds: described(secondsWindow, 'Alias of `windowSeconds`.'),
  ...calendarKinds,
  maxHold: described(
    maxHoldKind,
    'CONCURRENCY only, in place of a window: a hold that is neither released nor renewed expires after this time. Default: 60s.',
  ),
  refill: described(oneOf(['STEADY', 'INTERVAL'] as const), 'TOKEN_BUCKET only. Default: STEADY.'),
  algorithm: algorithmKind,
}

const { capacity: capacityKind, ...optionalKinds } = bandKinds
export const maxBands = 8
export const bandList = list(object({ capacity: capacityKind }, optionalKinds, { title: 'Band' }), { max: maxBands })

const windowNames = ['window', 'windowMs', 'windowSeconds', 'refillSeconds'] as const

/** A band in which missing and invalid fields are `undefined`. */
export type DraftBand = { readonly [K in keyof Band]: Band[K] | undefined }

/** Reads one band. `algorithm` comes from the band or its rule; it is `undefined` if invalid. */
export function readBand(values: FieldValues, algorithm: AlgorithmName | undefined): DraftBand {
  const fields = values.as(bandKinds)
  const capacity = fields.require('capacity')
  if (algorithm === 'CONCURRENCY') {
    const windowTicks = readMaxHold(fields, capacity)
    return { label: fields.read('label'), algorithm, refill: 'STEADY', capacity, refillTokens: capacity, windowTicks }
  }
  if (fields.has('maxHold') && algorithm !== undefined)
    fields.report('maxHold', `must be omitted with ${algorithm}; maxHold requires CONCURRENCY`)
  const refillTokens = fields.has('refillTokens')
    ? fields.read('refillTokens')
    : capacity === undefined
      ? undefined
      : defaultRefill(capacity)
  const calendar = fields.has('calendar') ? readCalendar(fields, windowNames) : undefined
  const windowTicks = fields.has('calendar')
    ? calendar && nominalTicks(calendar.unit)
    : fields.require(givenAlias(fields, windowNames) ?? 'window')
  if (!fields.has('calendar')) checkNoCalendar(fields)
  const refill = fields.has('refill') ? fields.read('refill') : 'STEADY'
  const label = fields.read('label')
  const band = { label, algorithm, refill, capacity, refillTokens, windowTicks, ...(calendar && { calendar }) }
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
  if (fields.has('calendar') && algorithm !== 'FIXED_WINDOW') {
    fields.report('calendar', `must be combined with algorithm: FIXED_WINDOW; received ${algorithm}`)
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
