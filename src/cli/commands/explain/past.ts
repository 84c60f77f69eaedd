import type { PastRejections } from '../../../server/routes/explain/past-rejections.js'
import { formatDuration } from '../../output/format-duration.js'
import { type Paint, printable } from '../../output/output.js'
import { usage } from './report.js'

/** The limits that a RateLimit header names, and the rejections that match. */
export function rejectionLines({ policies, rejections }: PastRejections, paint: Paint): string[] {
  const lines = policies.map(({ ruleSetId, ruleId, band, limit, windowMs }) => {
    const unit = windowMs === 0 ? 'concurrent' : `per ${formatDuration(windowMs)}`
    return `${paint('bold', `${ruleId} · ${band}`)} of rule set ${ruleSetId}: ${limit} ${unit}`
  })
  for (const one of rejections) {
    const { at, ruleId, band, limit, remaining, retryAfterMs, reason, method, path, key, traceId } = one
    const rule = [ruleId, band].filter((part) => part !== null).join(' · ')
    const used = limit < 0 ? reason : usage(reason, limit, remaining)
    const retry = retryAfterMs === null ? 'never succeeds' : `retry in ${formatDuration(retryAfterMs)}`
    const request = [method, path].filter((part) => part !== null).join(' ')
    const details = [request, key === null ? '' : `key ${key}`, traceId === null ? '' : `trace ${traceId}`]
    lines.push(`${new Date(at).toISOString()} rejected by ${rule || reason}: ${used}, ${retry}`)
    lines.push(`  ${paint('dim', printable(details.filter((part) => part !== '').join(', ')))}`)
  }
  if (rejections.length === 0) lines.push('No recent rejection matches. The server keeps the latest 500.')
  return lines
}
