import { type Ban, maxBanAfter } from '../../../core/bans/ban.js'
import { ticksPerMs } from '../../../core/clock.js'
import { maxWindowTicks, minWindowTicks } from '../../../core/rule.js'
import { openFields } from '../../../validation/fields.js'
import { described, type Kind, structured } from '../../../validation/kind.js'
import { duration, wholeNumber } from '../../../validation/kinds.js'

const length = duration(minWindowTicks, maxWindowTicks)
const factorKind: Kind<number> = {
  allowed: 'a number from 1 to 1000',
  schema: { type: 'number', minimum: 1, maximum: 1_000 },
  parse: (value) => (typeof value === 'number' && value >= 1 && value <= 1_000 ? value : undefined),
}

const kinds = {
  after: described(wholeNumber(1, maxBanAfter), 'The number of rejections that start a ban.'),
  within: described(length, 'The rejections must be within this time.'),
  for: described(length, 'The length of the first ban.'),
  factor: described(factorKind, 'Each further ban is this many times as long. Default: 1.'),
  max: described(
    length,
    'The longest ban. The escalation starts again after this time without one. Default: `for`, or 1d with a factor.',
  ),
}

const schema = {
  type: 'object',
  title: 'Ban',
  properties: Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, kind.schema])),
  required: ['after', 'within', 'for'],
  additionalProperties: false,
}

const dayMs = 86_400_000

/** Rejections of a key by a rule that ban the key. */
export const banKind: Kind<Ban> = structured(
  'a ban: { after, within, for, factor, max }',
  schema,
  (value, path, issues) => {
    const before = issues.count
    const fields = openFields(value, path, kinds, 'a ban: { after, within, for, factor, max }', issues)
    if (fields === undefined) return undefined
    const after = fields.require('after') ?? 0
    const within = fields.require('within') ?? 0
    const first = fields.require('for') ?? 0
    const factor = fields.read('factor') ?? 1
    const longest = fields.read('max') ?? (factor === 1 ? first : Math.max(first, dayMs))
    if (issues.count === before && longest < first)
      fields.report('max', `must not be shorter than for (${first / 1_000}s); received ${longest / 1_000}s`)
    if (issues.count > before) return undefined
    return {
      after,
      withinTicks: within * ticksPerMs,
      forTicks: first * ticksPerMs,
      factor,
      maxTicks: longest * ticksPerMs,
    }
  },
)
