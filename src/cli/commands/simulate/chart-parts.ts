/** Building blocks of the terminal charts: time columns, block characters in eight heights, a time axis with round labels. */
import { addTo, type TimeBucket } from '../../../simulate/index.js'
import { formatDuration } from '../../output/format-duration.js'
import type { Paint } from '../../output/output.js'

const blocks = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** The block character for a share (0 to 1) of the cell height. Any share above 0 is visible. */
export function cell(share: number): string {
  if (share <= 0) return ' '
  return blocks[Math.min(8, Math.max(1, Math.round(share * 8)))] as string
}

export const spark = (values: readonly number[], highest: number): string =>
  values.map((value) => cell(value / highest)).join('')

/** The number of buckets per column that fits all of them into `width`, rounded up to align axis labels where that is close. */
export function bucketsPerColumn(buckets: number, bucketMs: number, width: number): number {
  const least = Math.max(1, Math.ceil(buckets / Math.max(10, width)))
  for (let count = least; count <= least * 1.7; count++) {
    const columnMs = count * bucketMs
    if (Number.isInteger(labelStepMs(columnMs) / columnMs)) return count
  }
  return least
}

export function join(buckets: readonly TimeBucket[], count: number): TimeBucket[] {
  const columns: TimeBucket[] = []
  buckets.forEach((bucket, i) => {
    const column = columns[Math.floor(i / count)]
    if (column) addTo(column, bucket)
    else columns.push({ ...bucket })
  })
  return columns
}

/** One chart line: a dim label, right-aligned at the axis, and the cells. */
export function chartRow(label: string, axis: string, cells: string, gutter: number, paint: Paint): string {
  return `${paint('dim', `${label.padStart(gutter - 2)} ${axis}`)}${cells}`.trimEnd()
}

/** In milliseconds. */
const roundSteps = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3,
  300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 10_800e3, 21_600e3, 43_200e3, 86_400e3, 172_800e3, 604_800e3,
]
const columnsPerLabel = 8

const labelStepMs = (columnMs: number): number =>
  roundSteps.find((step) => step >= columnsPerLabel * columnMs) ?? 100 * columnMs

export function timeAxis(columns: number, columnMs: number, gutter: number, paint: Paint): string[] {
  const stepMs = labelStepMs(columnMs)
  const ticks = Array.from({ length: columns }, () => '─')
  let labels = ''
  for (let i = 0; Math.round((i * stepMs) / columnMs) < columns; i++) {
    const place = Math.round((i * stepMs) / columnMs)
    ticks[place] = '┬'
    labels = `${labels.padEnd(place)}${i === 0 ? '0s' : formatDuration(i * stepMs)}`
  }
  const indent = ' '.repeat(gutter - 1)
  return [paint('dim', `${indent}└${ticks.join('')}`), paint('dim', `${indent} ${labels}`)]
}
