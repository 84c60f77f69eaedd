import { described } from '../../validation/kind.js'
import { identifier, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { nullable, object } from '../../validation/structures.js'
import { count, epochMs, listOf, number, openObject, textOrNull } from './common-schemas.js'

const resolution = oneOf(['1s', '1m'] as const)

export const seriesQuerySchema = object(
  {},
  {
    resolution: described(resolution, '`1s`: the last 15 minutes. `1m`: the last 24 hours. Default: 1s.'),
    ruleSetId: described(identifier, 'Only decisions of this rule set.'),
    ruleId: described(identifier, 'Only decisions of this rule. Requires `ruleSetId`.'),
    since: described(wholeNumber(0, 8.64e15), 'Only intervals that end after this time. Epoch milliseconds.'),
  },
)

const counts = listOf(count())
const latency = listOf(nullable(number(0)), 'Milliseconds; null for an interval without a timed decision.')

const pointsSchema = openObject(
  'SeriesPoints',
  {
    at: listOf(count(), 'The end of each interval, oldest first. Epoch milliseconds.'),
    allowed: counts,
    delayed: counts,
    denied: counts,
    shadowDenied: counts,
    degraded: counts,
    p50Ms: latency,
    p99Ms: latency,
  },
  {},
  'Columns of equal length.',
)

const outageSchema = openObject('Outage', {
  kind: described(
    oneOf(['STORE', 'RULES'] as const),
    'STORE: the bucket store failed. RULES: newer rules could not be loaded.',
  ),
  fromAt: epochMs('Start.'),
  toAt: described(nullable(wholeNumber(0)), 'End; null if the outage continues. Epoch milliseconds.'),
  error: text,
})

export const seriesSchema = openObject('Series', {
  resolution,
  stepMs: wholeNumber(1),
  ruleSetId: textOrNull(),
  ruleId: textOrNull(),
  points: pointsSchema,
  outages: listOf(outageSchema, 'Outages that continue, or that ended after `since`; oldest first.'),
  series: listOf(
    openObject('SeriesName', { ruleSetId: text, ruleId: textOrNull() }),
    'Rule sets and rules that have a series: at most 64 with recent decisions.',
  ),
})
