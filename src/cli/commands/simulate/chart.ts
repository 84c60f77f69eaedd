/**
 * Renders traffic over time for the terminal, one block per limiter. Bars show the requests released within the window before
 * each instant, so a bar above the limit line means that the limit was exceeded. The row below shows the releases themselves.
 */
import type { Run, TimeBucket } from '../../../simulate/index.js'
import { formatDuration } from '../../output/format-duration.js'
import type { Paint } from '../../output/output.js'
import { bucketsPerColumn, cell, chartRow, join, spark, timeAxis } from './chart-parts.js'

interface ChartRun extends Pick<Run, 'mostInAnyWindow' | 'mostInProgress' | 'buckets'> {
  readonly name: string
  /** True if the bars show requests in progress instead of requests in a window. */
  readonly limitsProgress?: boolean
}

const mostOf = ({ limitsProgress, mostInProgress, mostInAnyWindow }: ChartRun): number =>
  limitsProgress ? (mostInProgress ?? 0) : mostInAnyWindow

export interface Chart {
  readonly bucketMs: number
  readonly windowMs: number
  readonly capacity: number
  readonly offered: ChartRun
  readonly runs: readonly ChartRun[]
}

/** Rows below the limit line, and the maximum above it. */
const rowsBelow = 2
const maxRowsAbove = 4

type Row = (label: string, axis: string, cells: string) => string

export function renderChart(chart: Chart, width: number, paint: Paint): string[] {
  const gutter = Math.max(9, String(chart.capacity * 3).length + 2)
  const joined = bucketsPerColumn(chart.offered.buckets.length, chart.bucketMs, width - gutter - 1)
  const offered = join(chart.offered.buckets, joined).map((column) => column.offered)
  const busiest = Math.max(1, ...offered)
  const row: Row = (label, axis, cells) => chartRow(label, axis, cells, gutter, paint)
  const lines = [row('offered', '│', paint('yellow', spark(offered, busiest)))]
  for (const run of chart.runs) {
    const columns = join(run.buckets, joined)
    const released = columns.map((column) => column.released)
    lines.push('', heading(run, chart, width, paint), ...bars(columns, run, chart.capacity, row, paint))
    lines.push(row('passing', '│', paint('cyan', spark(released, busiest))))
  }
  const columnMs = joined * chart.bucketMs
  return [...lines, ...timeAxis(offered.length, columnMs, gutter, paint), '', ...legend(chart, columnMs, paint)]
}

function legend({ windowMs, runs }: Chart, columnMs: number, paint: Paint): string[] {
  const [window, column] = [formatDuration(windowMs), formatDuration(columnMs)]
  const passed = `requests that passed in the preceding ${window}`
  const progress = 'requests in progress'
  const limitsProgress = runs.filter((run) => run.limitsProgress)
  const shown =
    limitsProgress.length === 0
      ? passed
      : limitsProgress.length === runs.length
        ? progress
        : `${passed}, or ${progress}`
  return [
    paint('dim', `bars: ${shown}; ┄ marks the limit`),
    paint('dim', `offered, passing: requests per column of ${column}`),
  ]
}

function heading(run: ChartRun, chart: Chart, width: number, paint: Paint): string {
  const { name, limitsProgress } = run
  const most = mostOf(run)
  const isOver = most > chart.capacity
  const found = `${most} in ${limitsProgress ? 'progress' : formatDuration(chart.windowMs)}, limit ${chart.capacity}`
  const padding = ' '.repeat(Math.max(1, width - 1 - name.length - found.length))
  return `${paint('bold', name)}${padding}${paint(isOver ? 'red' : 'green', found)}`
}

/** Rows from top to bottom: above the limit, the limit line, below the limit. All blocks use the same scale. */
function bars(columns: readonly TimeBucket[], run: ChartRun, capacity: number, row: Row, paint: Paint): string[] {
  const unit = capacity / rowsBelow
  const above = Math.min(maxRowsAbove, Math.ceil(Math.max(0, mostOf(run) - capacity) / unit))
  const level = (from: number): string => columns.map((column) => cell((column.peak - from) / unit)).join('')
  const lines: string[] = []
  for (let i = above; i > 0; i--) {
    const top = i === above ? [String(Math.round(capacity + i * unit)), '┤'] : ['', '│']
    lines.push(row(top[0] as string, top[1] as string, paint('red', level(capacity + (i - 1) * unit))))
  }
  const line = columns.map((column) => (column.peak > capacity ? '█' : '┄')).join('')
  const painted = line.replace(/█+|┄+/g, (part) => paint(part.startsWith('█') ? 'red' : 'dim', part))
  lines.push(row(String(capacity), '┼', painted))
  for (let i = rowsBelow; i > 0; i--) lines.push(row('', '│', paint('green', level((i - 1) * unit))))
  return lines
}
