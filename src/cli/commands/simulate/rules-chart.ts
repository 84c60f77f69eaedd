import type { RulesSimulation } from '../../../simulate/index.js'
import type { Colour, Paint } from '../../output/output.js'
import { bucketsPerColumn, chartRow, join, spark, timeAxis } from './chart-parts.js'

const gutter = 10

/** Offered, passing and rejected requests over time: one row each, on the same scale. */
export function renderRulesChart({ total, bucketMs }: RulesSimulation, width: number, paint: Paint): string[] {
  const joined = bucketsPerColumn(total.buckets.length, bucketMs, width - gutter - 1)
  const columns = join(total.buckets, joined)
  const busiest = Math.max(1, ...columns.map((column) => Math.max(column.offered, column.released)))
  const row = (label: string, colour: Colour, values: readonly number[]): string =>
    chartRow(label, '│', paint(colour, spark(values, busiest)), gutter, paint)
  return [
    row(
      'offered',
      'yellow',
      columns.map(({ offered }) => offered),
    ),
    row(
      'passing',
      'cyan',
      columns.map(({ released }) => released),
    ),
    row(
      'rejected',
      'red',
      columns.map(({ rejected }) => rejected),
    ),
    ...timeAxis(columns.length, joined * bucketMs, gutter, paint),
  ]
}
