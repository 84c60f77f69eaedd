import {
  type DecisionCounts,
  keptSeconds,
  mostDecisionsFirst,
  type RuleCounts,
  type StatisticsSummary,
} from './statistics.js'

type Writable<T> = { -readonly [K in keyof T]: T[K] }
type Kind = keyof DecisionCounts

const none = (): Writable<DecisionCounts> => ({ allowed: 0, delayed: 0, denied: 0, shadowDenied: 0 })
const isKind = (text: string): text is Kind => Object.hasOwn(none(), text)

/** Parses the SUMMARY reply of read.lua: the time, the totals, and the seconds of each minute, as alternating fields and counts. */
export function parseSummary([now, totals = [], ...minutes]: readonly unknown[]): StatisticsSummary {
  const nowMs = Number(now)
  const sums = { ...none(), degraded: 0 }
  const rules = new Map<string, Writable<RuleCounts>>()
  let sinceAt = nowMs
  for (const [field, count] of pairsOf(totals)) {
    if (field === 'since') sinceAt = count
    else if (field === 'degraded') sums.degraded = count
    else if (isKind(field)) sums[field] = count
    else countRule(rules, field, count)
  }
  return {
    sinceAt,
    totals: sums,
    rules: [...rules.values()].sort(mostDecisionsFirst),
    seconds: secondsOf(minutes, nowMs),
  }
}

function countRule(rules: Map<string, Writable<RuleCounts>>, field: string, count: number): void {
  const [ruleSetId, ruleId, kind] = JSON.parse(field) as [string | null, string | null, Kind]
  const name = JSON.stringify([ruleSetId, ruleId])
  const row = rules.get(name) ?? { ruleSetId, ruleId, ...none() }
  row[kind] += count
  rules.set(name, row)
}

/** Returns every past second, including those without data. */
function secondsOf(minutes: readonly unknown[], nowMs: number): StatisticsSummary['seconds'] {
  const bySecond = new Map<number, Writable<DecisionCounts>>()
  for (const minute of minutes)
    for (const [field, count] of pairsOf(minute)) {
      const [second = '', kind = ''] = field.split(':')
      const row = bySecond.get(Number(second)) ?? none()
      if (isKind(kind)) row[kind] += count
      bySecond.set(Number(second), row)
    }
  if (bySecond.size === 0) return []
  const last = Math.floor(nowMs / 1_000) - 1
  const first = Math.max(Math.min(...bySecond.keys()), last - keptSeconds + 1)
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => ({
    at: (first + i + 1) * 1_000,
    ...(bySecond.get(first + i) ?? none()),
  }))
}

function pairsOf(flat: unknown): [string, number][] {
  const list = flat as readonly Buffer[]
  return Array.from({ length: list.length / 2 }, (_, i) => [String(list[2 * i]), Number(list[2 * i + 1])])
}
