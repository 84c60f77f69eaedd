import type { keysSchema, summarySchema } from '../../../server/schemas/statistics-schemas.js'
import type { ValueOf } from '../../../validation/kind.js'
import type { Paint } from '../../output/output.js'
import { left, renderTable, right } from '../../output/table.js'

export type StatisticsSummary = ValueOf<typeof summarySchema>
export type KeyCount = ValueOf<typeof keysSchema>['keys'][number]

/** The content of `fluxgate top`, and the output of `fluxgate top --json`. */
export interface TopSnapshot {
  readonly server: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly sinceAt: number
  /** Decisions per second, averaged over the last seconds. */
  readonly rates: Readonly<Record<Outcome, number>>
  readonly totals: StatisticsSummary['totals']
  readonly rules: StatisticsSummary['rules']
  readonly keys: readonly KeyCount[]
}

type Outcome = 'allowed' | 'delayed' | 'denied' | 'shadowDenied'

const outcomes = ['allowed', 'delayed', 'denied', 'shadowDenied'] as const

/** The number of seconds over which rates are averaged. */
const rateSeconds = 5

export function snapshotOf(
  server: string,
  at: number,
  { sinceAt, totals, rules, seconds }: StatisticsSummary,
  keys: readonly KeyCount[],
  limit: number,
): TopSnapshot {
  const last = seconds.slice(-rateSeconds)
  const rate = (name: Outcome): number =>
    last.length === 0 ? 0 : last.reduce((sum, second) => sum + second[name], 0) / last.length
  const rates = Object.fromEntries(outcomes.map((name) => [name, rate(name)])) as TopSnapshot['rates']
  return { server, at, sinceAt, rates, totals, rules: rules.slice(0, limit), keys: keys.slice(0, limit) }
}

const counts = ['allowed', 'delayed', 'rejected', 'shadow'].map(right)

/** The lines of a snapshot. */
export function topLines({ server, at, sinceAt, rates, totals, rules, keys }: TopSnapshot, paint: Paint): string[] {
  const rate = (name: Outcome): string => `${rates[name].toFixed(1)}/s`
  const summary = [
    ['now', ...outcomes.map(rate), ''],
    ['total', ...outcomes.map((name) => String(totals[name])), String(totals.degraded)],
  ]
  return [
    `${paint('bold', 'fluxgate top')}  ${server}  ${new Date(at).toISOString()}`,
    paint('dim', `counts since ${new Date(sinceAt).toISOString()}`),
    '',
    ...renderTable([left(''), ...counts, right('degraded')], summary),
    '',
    paint('bold', 'Rules'),
    ...(rules.length === 0
      ? ['no decisions yet']
      : renderTable(
          [left('rule set'), left('rule'), ...counts],
          rules.map((row) => [row.ruleSetId ?? '-', row.ruleId ?? '-', ...outcomes.map((name) => String(row[name]))]),
        )),
    '',
    paint('bold', 'Keys with the most rejections'),
    ...(keys.length === 0
      ? ['none']
      : renderTable(
          [left('key'), left('rule'), right('requests'), right('rejected')],
          keys.map(({ key, ruleId, requests, denied }) => [
            shortened(key),
            ruleId ?? '-',
            Math.round(requests).toString(),
            Math.round(denied).toString(),
          ]),
        )),
  ]
}

const maxKeyLength = 60

const shortened = (key: string): string => (key.length > maxKeyLength ? `${key.slice(0, maxKeyLength - 1)}…` : key)
