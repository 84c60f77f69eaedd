import { type AlgorithmName, requestCost } from '../../core/rule.js'
import { formatDuration } from './format-duration.js'

interface Limit {
  readonly algorithm: AlgorithmName
  readonly capacity: number
  readonly windowMs: number
  /** The unit of a calendar, which replaces the window. */
  readonly calendar?: string | undefined
  /** The cost that is counted; default: requests, which are not named. */
  readonly cost?: string | undefined
}

/** The limit of a band in tables: `100 per 1h`, `1000 tokens per month` or `5 concurrent`. */
export function limitText({ algorithm, capacity, windowMs, calendar, cost = requestCost }: Limit): string {
  if (algorithm === 'CONCURRENCY') return `${capacity} concurrent`
  const counted = cost === requestCost ? capacity : `${capacity} ${cost}`
  return `${counted} per ${calendar?.toLowerCase() ?? formatDuration(windowMs)}`
}
