import type { AlgorithmName } from '../../core/rule.js'
import { formatDuration } from './format-duration.js'

interface Limit {
  readonly algorithm: AlgorithmName
  readonly capacity: number
  readonly windowMs: number
  /** The unit of a calendar, which replaces the window. */
  readonly calendar?: string | undefined
}

/** The limit of a band in tables: `100 per 1h`, `1000 per month` or `5 concurrent`. */
export function limitText({ algorithm, capacity, windowMs, calendar }: Limit): string {
  if (algorithm === 'CONCURRENCY') return `${capacity} concurrent`
  return `${capacity} per ${calendar?.toLowerCase() ?? formatDuration(windowMs)}`
}
