// @ts-check
/** Records that are found by what they begin with, and statistics that are fed beside decisions. */

import { timesAsFast } from '../measure.mjs'
import { startServer } from '../redis/server.mjs'
import { feedingStatistics } from '../search-index/feeding.mjs'
import { timedQueries } from '../search-index/queries.mjs'

export const title = 'Search index'

/** @type {import('../report.mjs').Section} */
export async function overSearchIndex(effort) {
  const server = await startServer()
  try {
    const queries = await timedQueries(title, server, effort)
    const { rows, plain, shared } = await feedingStatistics(title, server, effort)
    return {
      title,
      note: `${effort.indexRecords.toLocaleString('en')} records in one Redis, asked by one caller, one query at a time. Statistics are fed by a gate with rules in memory, where a decision costs least; what it tells Redis once a second is part of the figure.`,
      tables: [{ title: 'Statistics', rows, baseline: plain }],
      figures: [queries.table],
      ratios: [
        { what: 'p99 in ms of completing a prefix', measured: queries.suggestP99, atMost: 2 },
        { what: 'p99 in ms of a page by prefix', measured: queries.findP99, atMost: 2 },
        { what: `${shared} : ${plain}`, measured: timesAsFast(rows, shared, plain), atLeast: 0.95 },
      ],
    }
  } finally {
    await server.stop()
  }
}
