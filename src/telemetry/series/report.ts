import { durationBounds } from '../duration-histogram.js'
import type { SeriesQuery, SeriesRows } from './decision-series.js'
import { mergeOutages, type Outage } from './outages.js'
import { countNames, resolutions, rowLength } from './ring.js'

/** The series of one process. Plain data, because workers exchange it. */
export interface SeriesPart extends SeriesRows {
  readonly query: SeriesQuery
  readonly outages: readonly Outage[]
  readonly series: readonly { readonly ruleSetId: string; readonly ruleId: string | null }[]
}

/** Columns of equal length, oldest first, as charting libraries take them. */
export interface SeriesPoints {
  /** The end of each interval, in epoch milliseconds. */
  readonly at: readonly number[]
  readonly allowed: readonly number[]
  readonly delayed: readonly number[]
  readonly denied: readonly number[]
  readonly shadowDenied: readonly number[]
  readonly degraded: readonly number[]
  /** Null for an interval without a timed decision. */
  readonly p50Ms: readonly (number | null)[]
  readonly p99Ms: readonly (number | null)[]
}

export interface SeriesReport {
  readonly resolution: SeriesQuery['resolution']
  readonly stepMs: number
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  readonly points: SeriesPoints
  readonly outages: readonly Outage[]
  /** The rule sets (without `ruleId`) and rules that have a series. */
  readonly series: SeriesPart['series']
}

/** Combines the series of several processes. */
export function seriesReport(parts: readonly SeriesPart[]): SeriesReport {
  const { query } = parts[0] as SeriesPart
  const { resolution, ruleSetId = null, ruleId = null } = query
  const { stepMs } = resolutions[resolution]
  const filled = parts.filter(({ rows }) => rows.length > 0)
  const first = Math.min(...filled.map((part) => part.first))
  const end = Math.max(...filled.map((part) => part.first + part.rows.length))
  const rows = Array.from({ length: filled.length === 0 ? 0 : end - first }, (_, i) => sumAt(filled, first + i))
  const column = (name: (typeof countNames)[number]) => rows.map((row) => row[countNames.indexOf(name)] as number)
  return {
    resolution,
    stepMs,
    ruleSetId,
    ruleId,
    points: {
      at: rows.map((_, i) => (first + i + 1) * stepMs),
      allowed: column('allowed'),
      delayed: column('delayed'),
      denied: column('denied'),
      shadowDenied: column('shadowDenied'),
      degraded: column('degraded'),
      p50Ms: rows.map((row) => quantileMs(row.slice(countNames.length), 0.5)),
      p99Ms: rows.map((row) => quantileMs(row.slice(countNames.length), 0.99)),
    },
    outages: mergeOutages(parts.flatMap(({ outages }) => outages)),
    series: distinct(parts.flatMap(({ series }) => series)),
  }
}

function sumAt(parts: readonly SeriesPart[], interval: number): number[] {
  const sum: number[] = new Array(rowLength).fill(0)
  for (const { first, rows } of parts)
    for (const [i, count] of (rows[interval - first] ?? []).entries()) (sum[i] as number) += count
  return sum
}

/** Interpolates within the bucket, as `histogram_quantile` of Prometheus does. Durations above all bounds count as the last bound. */
export function quantileMs(counts: readonly number[], quantile: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const rank = quantile * total
  let below = 0
  for (const [i, count] of counts.entries()) {
    if (count === 0 || below + count < rank) {
      below += count
      continue
    }
    const upper = durationBounds[i]
    const lower = i === 0 ? 0 : (durationBounds[i - 1] as number)
    const seconds = upper === undefined ? lower : lower + (upper - lower) * ((rank - below) / count)
    return Number((seconds * 1_000).toPrecision(4))
  }
  return null
}

function distinct(all: SeriesPart['series']): SeriesPart['series'] {
  const byName = new Map(
    all.map(({ ruleSetId, ruleId }) => [JSON.stringify([ruleSetId, ruleId]), { ruleSetId, ruleId }]),
  )
  return [...byName.keys()].sort().map((name) => byName.get(name) as SeriesPart['series'][number])
}
