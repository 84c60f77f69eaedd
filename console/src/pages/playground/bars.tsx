import type { TimeBucket } from '../../../../src/simulate/time-series.js'

interface BarsProps {
  readonly label: string
  readonly buckets: readonly TimeBucket[]
  readonly bucketMs: number
  readonly windowMs: number
  readonly durationMs: number
  readonly columns: number
  /** The largest count of a column in all charts, so that they have the same scale. */
  readonly most: number
}

const width = 960
const height = 120
const axis = 76
const [fewestPerWindow, mostPerWindow] = [8, 24]

/** As many columns per window as the capacity, or half or twice as many, so that an even rate has even columns. */
export function columnCount(capacity: number, windows: number): number {
  let perWindow = capacity
  while (perWindow > mostPerWindow) perWindow /= 2
  while (perWindow < fewestPerWindow) perWindow *= 2
  return Math.round(perWindow * windows)
}

/** Counts per column of the chart. */
export function columnsOf(buckets: readonly TimeBucket[], bucketMs: number, durationMs: number, columns: number) {
  const released = new Float64Array(columns)
  const rejected = new Float64Array(columns)
  const delayed = new Float64Array(columns)
  buckets.forEach((bucket, i) => {
    const column = Math.floor(((i + 0.5) * bucketMs * columns) / durationMs)
    // Leaky buckets release after the end of the traffic. These releases are in the last column.
    const index = Math.min(columns - 1, column)
    released[index] = (released[index] ?? 0) + bucket.released
    rejected[index] = (rejected[index] ?? 0) + bucket.rejected
    delayed[index] = (delayed[index] ?? 0) + bucket.delayed
  })
  return { released, rejected, delayed }
}

/** Released requests above the axis; rejected and delayed arrivals below it. Lines mark the windows. */
export function Bars({ label, buckets, bucketMs, windowMs, durationMs, columns, most }: BarsProps) {
  const { released, rejected, delayed } = columnsOf(buckets, bucketMs, durationMs, columns)
  const step = width / columns
  const up = (count: number): number => (count / most) * (axis - 4)
  const down = (count: number): number => (count / most) * (height - axis - 4)
  const rect = (column: number, top: number, size: number): string =>
    size < 0.2 ? '' : `M${column * step + 1} ${top}h${step - 2}v${size}h${2 - step}z`
  const path = (values: Float64Array, draw: (column: number, count: number) => string): string =>
    Array.from(values, (count, column) => draw(column, count)).join('')
  const lines = Array.from({ length: Math.floor(durationMs / windowMs) - 1 }, (_, i) => {
    const x = ((i + 1) * windowMs * width) / durationMs
    return `M${x} 0V${height}`
  }).join('')
  return (
    <svg class="bars-chart" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="bars-grid" d={lines} />
      <path class="bars-ok" d={path(released, (column, count) => rect(column, axis - up(count), up(count)))} />
      <path class="bars-bad" d={path(rejected, (column, count) => rect(column, axis + 1, down(count)))} />
      <path
        class="bars-warn"
        d={path(delayed, (column, count) => rect(column, axis + 1 + down(rejected[column] ?? 0), down(count)))}
      />
      <path class="bars-axis" d={`M0 ${axis}H${width}`} />
    </svg>
  )
}
