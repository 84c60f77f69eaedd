import { defaultMaxHoldTicks, maxConcurrency, maxWindowTicks, minWindowTicks } from '../../../core/rule.js'
import { durationTicks, unitForms } from '../../../validation/duration.js'
import type { FieldValues } from '../../../validation/fields.js'
import type { Kind } from '../../../validation/kind.js'
import { unitSchema } from '../../../validation/kinds.js'

/** The time after which a hold expires, with a unit, parsed to ticks. */
export const maxHoldKind: Kind<number> = {
  allowed: `a duration with a unit from 1ms to 366d in whole microseconds (${unitForms}), such as 60s`,
  schema: unitSchema,
  parse: (value) => (typeof value === 'string' ? parseWindow(value) : undefined),
}

/** Parses a duration with a unit to ticks. Undefined if it is shorter or longer than a window may be. */
export function parseWindow(text: string): number | undefined {
  const ticks = durationTicks(text)
  return isWindow(ticks) ? ticks : undefined
}

export const isWindow = (ticks: number | undefined): ticks is number =>
  ticks !== undefined && ticks >= minWindowTicks && ticks <= maxWindowTicks

/** Fields that a band with the algorithm CONCURRENCY must not have. */
const rateFields = [
  'window',
  'windowMs',
  'windowSeconds',
  'refillSeconds',
  'refillTokens',
  'refill',
  'calendar',
  'timeZone',
  'anchor',
]

/** Reads `maxHold` of a CONCURRENCY band as its window, and reports fields that only other algorithms have. */
export function readMaxHold(values: FieldValues, capacity: number | undefined): number | undefined {
  const fields = values.as({ maxHold: maxHoldKind })
  for (const name of rateFields)
    if (fields.has(name))
      fields.report(
        name,
        'must be omitted with CONCURRENCY, which has no window; maxHold is the longest time of a hold',
      )
  if (capacity !== undefined && capacity > maxConcurrency)
    fields.report('capacity', `must be at most ${maxConcurrency} with CONCURRENCY; received ${capacity}`)
  return fields.has('maxHold') ? fields.read('maxHold') : defaultMaxHoldTicks
}
