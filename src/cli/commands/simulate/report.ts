import { ticksPerMs } from '../../../core/clock.js'
import type { RecordingReport, RulesSimulation, Simulation } from '../../../simulate/index.js'
import { formatDuration } from '../../output/format-duration.js'
import type { Paint } from '../../output/output.js'
import { type Column, renderTable } from '../../output/table.js'
import { renderChart } from './chart.js'
import { renderRulesChart } from './rules-chart.js'

const left = (title: string): Column => ({ title, align: 'left' })
const right = (title: string): Column => ({ title, align: 'right' })
const gap = (ms: number | null): string => (ms === null ? '-' : formatDuration(ms))

/** Table and chart that compare algorithms on the same arrivals. */
export function renderSimulation(simulation: Simulation, width: number, paint: Paint): string[] {
  const { offered, runs, windowMs } = simulation
  const capacity = runs[0]?.band.capacity ?? 1
  const columns = [
    left('algorithm'),
    right('allowed'),
    right('rejected'),
    right(`most in\nany ${formatDuration(windowMs)}`),
    right('gap\nmin'),
    right('\nmax'),
    right('delay\nmean'),
    right('\nmax'),
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
  ])
  const named = runs.map((run, i) => ({ ...run, name: rows[i]?.[0] ?? '' }))
  const chart = { ...simulation, capacity, offered: { ...offered, name: 'offered' }, runs: named }
  return [...renderTable(columns, rows), '', ...renderChart(chart, width, paint)]
}

/** Table of rules, and a chart of offered, passing and rejected requests over time. */
export function renderRulesSimulation(simulation: RulesSimulation, width: number, paint: Paint): string[] {
  const columns = [left('rule'), right('applied'), right('allowed'), right('rejected'), right('shadow\nrejected')]
  const rows = simulation.rules.map((rule) => [
    rule.ruleId,
    String(rule.applied),
    String(rule.allowed),
    String(rule.rejected),
    String(rule.shadowRejected),
  ])
  const { total, withoutRule } = simulation
  const all = ['all requests', String(total.offered), String(total.allowed), String(total.rejected), '']
  const none = ['(no rule)', String(withoutRule), String(withoutRule), '0', '']
  const table = renderTable(columns, [...rows, ...(withoutRule > 0 ? [none] : []), all])
  return [...table, '', ...renderRulesChart(simulation, width, paint)]
}

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
