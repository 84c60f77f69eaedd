/** Decisions over time. After the first load only new points are requested, because the page asks every second. */
import { useRef } from 'preact/hooks'
import type { SeriesPoints as Points, SeriesReport as Series } from '../../../../src/telemetry/series/report.js'
import { get } from '../../state/api.js'
import { type Loaded, useLoaded } from '../../ui/states.js'

export type { Points, Series }

/** The latest points are requested again, because a worker may have reported its share late. */
const repeated = 3

export function useSeries(query: string, everyMs: number): Loaded<Series> {
  const known = useRef<{ readonly query: string; readonly series: Series; readonly size: number }>(undefined)
  return useLoaded(
    async (signal) => {
      const { series, size } = known.current?.query === query ? known.current : {}
      const since = series === undefined ? '' : `&since=${series.points.at.at(-repeated) ?? 0}`
      const fresh = await get<Series>(`/api/stats/series?${query}${since}`, signal)
      const merged = series === undefined ? fresh : mergeSeries(series, fresh, size ?? 0)
      known.current = { query, series: merged, size: size ?? fresh.points.at.length }
      return merged
    },
    [query],
    everyMs,
  )
}

/** Replaces the end of a series by newer points. `size` is the number of points to keep. */
function mergeSeries(known: Series, fresh: Series, size: number): Series {
  const start = fresh.points.at[0]
  const kept = start === undefined ? known.points.at.length : known.points.at.findIndex((at) => at >= start)
  const end = kept === -1 ? known.points.at.length : kept
  const points = Object.fromEntries(
    Object.entries(fresh.points).map(([name, values]: [string, readonly unknown[]]) => [
      name,
      [...known.points[name as keyof Points].slice(0, end), ...values].slice(-size),
    ]),
  ) as unknown as Points
  const first = points.at[0] ?? 0
  const outages = new Map(
    [...known.outages, ...fresh.outages].map((outage) => [`${outage.kind}/${outage.fromAt}`, outage]),
  )
  return { ...fresh, points, outages: [...outages.values()].filter(({ toAt }) => toAt === null || toAt >= first) }
}
