import type { RecentDecision } from '../state/statistics.js'
import { duration, whole } from './format.js'
import { t } from './translate.js'

/** `reads · per-minute · 1000 of 1000 used, retry in 12 s` */
export function rejectionSentence(decision: RecentDecision): string {
  const { ruleId, band, limit, remaining, retryAfterMs, reason } = decision
  const parts = [ruleId, band].filter((part) => part !== null)
  const retry =
    retryAfterMs === null ? t('neverAllowed') : retryAfterMs > 0 ? t('retryIn', { time: duration(retryAfterMs) }) : ''
  const cause =
    reason === 'LIMITED' && limit >= 0
      ? t('used', { used: whole(limit - Math.max(0, remaining)), limit: whole(limit) })
      : reasonText(reason)
  return [...parts, [cause, retry].filter(Boolean).join(', ')].join(' · ')
}

const reasons = {
  ALLOWED: 'reasonAllowed',
  LIMITED: 'reasonLimited',
  BANNED: 'reasonBanned',
  IMPOSSIBLE: 'reasonImpossible',
  MISSING_KEY: 'reasonMissingKey',
  NO_RULE: 'reasonNoRule',
  NO_RULE_SET: 'reasonNoRuleSet',
  STORE_FAILURE: 'reasonStoreFailure',
  ALLOW_LISTED: 'reasonAllowListed',
  DENY_LISTED: 'reasonDenyListed',
} as const

export const reasonText = (reason: string): string =>
  Object.hasOwn(reasons, reason) ? t(reasons[reason as keyof typeof reasons]) : reason
