import { algorithmTraits } from '../../../core/algorithm-traits.js'
import { ticksPerMs } from '../../../core/clock.js'
import type { RecordingReport, RuleRun, RulesSimulation, Simulation } from '../../../simulate/index.js'
import { formatDuration } from '../../output/format-duration.js'
import type { Paint } from '../../output/output.js'
import { left, renderTable, right } from '../../output/table.js'
import { renderChart } from './chart.js'
import { renderRulesChart } from './rules-chart.js'

const gap = (ms: number | null): string => (ms === null ? '-' : formatDuration(ms))

/** Table and chart that compare algorithms on the same arrivals. */
export function renderSimulation(simulation: Simulation, width: number, paint: Paint): string[] {
  const { offered, runs, windowMs } = simulation
  const capacity = runs[0]?.band.capacity ?? 1
  const hasDurations = offered.mostInProgress !== null
  const columns = [
    left('algorithm'),
    right('allowed'),
    right('rejected'),
    right(`most in\nany ${formatDuration(windowMs)}`),
    right('gap\nmin'),
    right('\nmax'),
    right('delay\nmean'),
    right('\nmax'),
    ...(hasDurations ? [right('most in\nprogress')] : []),
  ]
  const rows = runs.map((run) => [
    run.band.refill === 'INTERVAL' ? `${run.band.algorithm} (interval)` : run.band.algorithm,
    String(run.allowed),
    String(run.rejected),
    String(run.mostInAnyWindow),
    gap(run.smallestGapMs),
    gap(run.longestGapMs),
    formatDuration(run.meanDelayMs),
    formatDuration(run.maxDelayMs),
    ...(hasDurations ? [String(run.mostInProgress ?? 0)] : []),
  ])
  const named = runs.map((run, i) => ({
    ...run,
    name: rows[i]?.[0] ?? '',
    limitsProgress: algorithmTraits[run.band.algorithm].takesHolds === true,
  }))
  const chart = { ...simulation, capacity, offered: { ...offered, name: 'offered' }, runs: named }
  return [...renderTable(columns, rows), '', ...renderChart(chart, width, paint)]
}

/** Table of rules, and a chart of offered, passing and rejected requests over time. */
export function renderRulesSimulation(simulation: RulesSimulation, width: number, paint: Paint): string[] {
  const { rules, total, withoutRule } = simulation
  const hasBans = rules.some(({ banned }) => banned > 0)
  const columns = [
    left('rule'),
    right('applied'),
    right('allowed'),
    right('rejected'),
    ...(hasBans ? [right('of these\nbanned')] : []),
    right('shadow\nrejected'),
  ]
  const row = (name: string, { applied, allowed, rejected, banned, shadowRejected }: RuleRow): string[] => [
    name,
    ...[applied, allowed, rejected, ...(hasBans ? [banned] : []), shadowRejected].map((count) => String(count ?? '')),
  ]
  const rows = rules.map((rule) => row(rule.ruleId, rule))
  if (withoutRule > 0) rows.push(row('(no rule)', { applied: withoutRule, allowed: withoutRule, rejected: 0 }))
  rows.push(row('all requests', { ...total, applied: total.offered }))
  const progress = total.mostInProgress === null ? [] : [`most requests in progress: ${total.mostInProgress}`, '']
  return [...renderTable(columns, rows), '', ...progress, ...renderRulesChart(simulation, width, paint)]
}

type RuleRow = Pick<RuleRun, 'applied' | 'allowed' | 'rejected'> & Partial<Pick<RuleRun, 'banned' | 'shadowRejected'>>

/** Notes on recorded traffic: its source, unreadable lines, and requests that were out of order. */
export function recordingNotes(file: string, report: RecordingReport, startAtMs: number): string[] {
  const { format, lines, badLines, badLineNumbers, moved } = report
  const name = file === '-' ? 'standard input' : file
  if (format === 'empty') return [`${name} contains no requests`]
  // Small timestamps are relative, so they have no date.
  const start = startAtMs < 1e9 ? '' : `, from ${new Date(startAtMs).toISOString()}`
  const notes = [`${name}, ${lines} lines of ${format}${start}`]
  const named = `${badLineNumbers.join(', ')}${badLines > badLineNumbers.length ? ', …' : ''}`
  if (badLines > 0) notes.push(`${badLines} ${badLines === 1 ? 'line' : 'lines'} could not be parsed: ${named}`)
  if (moved > 0) notes.push(`${moved} requests were far out of order and were moved to the time of their predecessor`)
  return notes
}

/** The simulation for `--json`: limits use the names of the options, and all durations are in milliseconds. */
export function simulationDocument({ runs, ...simulation }: Simulation): object {
  return {
    ...simulation,
    runs: runs.map(({ band: { algorithm, refill, capacity, refillTokens, windowTicks }, ...run }) => ({
      ...{ algorithm, capacity, refillTokens, windowMs: windowTicks / ticksPerMs, refill },
      ...run,
    })),
  }
}
