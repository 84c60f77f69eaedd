import type { Decision } from '../../../core/decision.js'
import type { ExplainedBand, ExplainedRule, Explanation, FailedCondition } from '../../../core/explain/explanation.js'
import { formatDuration } from '../../output/format-duration.js'
import { type Paint, printable } from '../../output/output.js'

/** The text of an explanation: the decision, the rules that apply with their buckets, and the others with their reason. */
export function explanationLines(
  { ruleSetId, paths, rules, omitted, decision }: Explanation,
  nowMs: number,
  paint: Paint,
): string[] {
  const lines = [decisionLine(decision, paint)]
  if (ruleSetId !== null) lines.push(`rule set ${ruleSetId}, path ${printable(paths.join(' or '))}`)
  const width = Math.max(0, ...rules.map(({ ruleId }) => ruleId.length))
  for (const rule of rules) lines.push(...ruleLines(rule, width, nowMs, paint))
  if (omitted > 0) lines.push(paint('dim', `… and ${omitted} rules that do not apply (--limit)`))
  return lines
}

/** "rejected by login · hour: 2 of 2 used, retry in 30m". */
function decisionLine(decision: Decision, paint: Paint): string {
  const { allowed, reason, ruleId, band, limit, remaining, retryAfterMs, delayMs, degraded } = decision
  const verdict = allowed ? paint('green', 'allowed') : paint('red', 'rejected')
  const rule = ruleId === null ? '' : ` by ${ruleId}${band === null ? '' : ` · ${band}`}`
  const parts = [
    band === null || limit < 0 ? reason : usage(reason, limit, remaining),
    ...(delayMs > 0 ? [`after ${formatDuration(delayMs)}`] : []),
    ...(allowed ? [] : [retryAfterMs === null ? 'never succeeds' : `retry in ${formatDuration(retryAfterMs)}`]),
    ...(degraded ? ['without the shared store'] : []),
  ]
  return `${verdict}${rule}: ${parts.join(', ')}`
}

/** A banned key is rejected whatever is left in its buckets. */
export const usage = (reason: Decision['reason'], limit: number, remaining: number): string =>
  reason === 'BANNED' ? 'the key is banned' : `${limit - Math.max(0, remaining)} of ${limit} used`

function ruleLines(rule: ExplainedRule, width: number, nowMs: number, paint: Paint): string[] {
  const { ruleId, status, failed, buckets, mode } = rule
  const name = ruleId.padEnd(width)
  if (status !== 'MATCHED') return [`  ${name}  ${paint('dim', `${notes[status]}${reasonOf(status, failed)}`)}`]
  return buckets.flatMap(({ key, shadow, override, bands }) => {
    const details = [
      ...(shadow ? [mode === 'SHADOW' ? 'shadow' : 'shadow for this key'] : []),
      ...(override === null ? [] : [`override ${override}`]),
    ]
    const head = `  ${name}  ${paint('bold', 'applies')}, key ${printable(key)}${details.length > 0 ? ` (${details.join(', ')})` : ''}`
    return [head, ...bands.map((band) => `  ${' '.repeat(width)}    ${bandText(band, nowMs, paint)}`)]
  })
}

const notes: Readonly<Record<Exclude<ExplainedRule['status'], 'MATCHED'>, string>> = {
  NOT_MATCHED: 'does not match',
  DISABLED: 'is disabled',
  NO_KEY: 'is skipped: the request has no key',
  MISSING_KEY: 'rejects: the request has no key',
  PRECEDED: 'is preceded',
}

function reasonOf(status: ExplainedRule['status'], failed: FailedCondition | null): string {
  if (failed === null || status === 'DISABLED') return ''
  const { field, expected, received } = failed
  if (status === 'PRECEDED') return ` by another rule (strategy ${String(received)})`
  if (status !== 'NOT_MATCHED') return ` (${field})`
  const value = received === null ? 'the request has none' : `received ${printable([received].flat().join(', '))}`
  return `: ${field} must be ${expected.join(' or ')}; ${value}`
}

function bandText(
  { label, limit, remaining, resetAt, allowed, retryAfterMs }: ExplainedBand,
  nowMs: number,
  paint: Paint,
) {
  const level = `${label}: ${remaining} of ${limit} left`
  const full = remaining < limit ? `, resets in ${formatDuration(Math.max(0, resetAt - nowMs))}` : ''
  if (allowed !== false) return level + full
  const retry = retryAfterMs === null ? 'never allows it' : `allows it in ${formatDuration(retryAfterMs)}`
  return `${level}${full}, ${paint('red', retry)}`
}
