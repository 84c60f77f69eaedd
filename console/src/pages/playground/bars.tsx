import type { TimeBucket } from '../../../../src/simulate/time-series.js'
import { exactly, whole } from '../../text/format.js'

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
const height = 136
const axis = height / 2
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

/** Released requests above the axis; rejected and delayed arrivals below it, in the same scale. Lines mark the windows. */
export function Bars({ label, buckets, bucketMs, windowMs, durationMs, columns, most }: BarsProps) {
  const { released, rejected, delayed } = columnsOf(buckets, bucketMs, durationMs, columns)
  const step = width / columns
  const sizeOf = (count: number): number => (count / most) * (axis - 2)
  const rect = (column: number, top: number, size: number): string =>
    size < 0.2 ? '' : `M${column * step + 1} ${top}h${step - 2}v${size}h${2 - step}z`
  const path = (values: Float64Array, topOf: (column: number, size: number) => number): string =>
    Array.from(values, (count, column) => rect(column, topOf(column, sizeOf(count)), sizeOf(count))).join('')
  const windows = Math.round(durationMs / windowMs)
  const edges = Array.from({ length: windows + 1 }, (_, i) => i)
  const lines = edges.slice(1, -1).map((i) => `M${(i * width) / windows} 0V${height}`)
  return (
    <div class="bars-frame">
      <div class="bars-scale" aria-hidden="true">
        <span>{whole(most)}</span>
        <span>0</span>
        <span>{whole(most)}</span>
      </div>
      <svg
        class="bars-chart"
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        <path class="bars-grid" d={lines.join('')} />
        <path class="bars-ok" d={path(released, (_, size) => axis - size)} />
        <path class="bars-bad" d={path(rejected, () => axis + 1)} />
        <path class="bars-warn" d={path(delayed, (column) => axis + 1 + sizeOf(rejected[column] ?? 0))} />
        <path class="bars-axis" d={`M0 ${axis}H${width}`} />
      </svg>
      <div class="bars-times" aria-hidden="true">
        {edges.map((i) => (
          <span key={i}>{i === 0 ? 0 : exactly(i * windowMs)}</span>
        ))}
      </div>
    </div>
  )
}
