/** Shapes of the statistics routes. */
import type { ServerHealth } from '../../../src/server/server-gate.js'

export type {
  DecisionCounts as Counts,
  KeyCount,
  RecentDecision,
  StatisticsSummary as Summary,
} from '../../../src/telemetry/statistics/statistics.js'

export type Health = Pick<ServerHealth, 'store' | 'rules'>
