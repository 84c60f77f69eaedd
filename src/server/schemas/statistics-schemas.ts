import { described } from '../../validation/kind.js'
import { boolean, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { nullable, object } from '../../validation/structures.js'
import { count, listOf, number, openObject, textOrNull } from './common-schemas.js'
import { reasons } from './decision-schema.js'

const open = { isOpen: true }
const counts = {
  allowed: count(),
  delayed: count(),
  denied: count(),
  shadowDenied: count('Requests that a rule in SHADOW mode would have rejected.'),
}
const ruleFields = { ruleSetId: textOrNull(), ruleId: textOrNull() }
const at = number(0, 'Epoch milliseconds.')
/** A count that is estimated if there are many requests. */
const estimate = number(0)

export const summarySchema = openObject('Statistics', {
  sinceAt: at,
  totals: openObject('StatisticsTotals', { ...counts, degraded: count() }),
  rules: listOf(openObject('RuleStatistics', { ...ruleFields, ...counts }), 'Rules with the most decisions first.'),
  seconds: listOf(openObject('SecondStatistics', { ...counts, at }), 'The most recent seconds, oldest first.'),
})

const keyStatistics = {
  ...ruleFields,
  key: described(text, 'A digest, unless `revealKeys` is set.'),
  requests: estimate,
  denied: estimate,
  lastAt: at,
}

export const keysSchema = openObject(
  'Keys',
  { keys: listOf(object(keyStatistics, {}, open)) },
  {},
  'Counts decay over time. High counts are estimates.',
)

const recentDecision = {
  allowed: boolean,
  delayMs: number(0),
  reason: oneOf(reasons),
  ...ruleFields,
  band: textOrNull(),
  key: textOrNull(),
  limit: wholeNumber(-1),
  remaining: wholeNumber(-1),
  retryAfterMs: nullable(wholeNumber(0)),
  degraded: boolean,
  at,
  method: textOrNull(),
  path: textOrNull(),
  traceId: textOrNull('From `traceparent` or `X-Trace-Id`.'),
  weight: number(1, 'Number of decisions that this sample represents.'),
}

export const recentDecisionSchema = openObject('RecentDecision', recentDecision)

export const recentSchema = openObject('RecentDecisions', { decisions: listOf(recentDecisionSchema, 'Newest first.') })
