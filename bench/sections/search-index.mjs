// @ts-check
/** Prefix queries, and the cost of statistics for decisions. */

import { timesAsFast } from '../measure.mjs'
import { startServer } from '../redis/server.mjs'
import { feedingStatistics } from '../search-index/feeding.mjs'
import { timedQueries } from '../search-index/queries.mjs'

export const title = 'Search index'

/** @type {import('../results/report.mjs').Section} */
export async function overSearchIndex(effort) {
  const server = await startServer()
  try {
    const queries = await timedQueries(title, server, effort)
    const { rows, plain, shared } = await feedingStatistics(title, server, effort)
    return {
      title,
      note: `${effort.indexRecords.toLocaleString('en')} records in one Redis; one caller, one query at a time. The statistics are those of a gate with buckets in memory, where decisions are cheapest; the figures include the flush to Redis once per second.`,
      tables: [{ title: 'Statistics', rows, baseline: plain }],
      figures: [queries.table],
      ratios: [
        { what: 'p99 ms of suggest by prefix', measured: queries.suggestP99, atMost: 2 },
        { what: 'p99 ms of find by prefix', measured: queries.findP99, atMost: 2 },
        { what: `${shared} vs ${plain}`, measured: timesAsFast(rows, shared, plain), atLeast: 0.95 },
      ],
    }
  } finally {
    await server.stop()
  }
}
