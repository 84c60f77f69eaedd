import type { Config } from '../../config/config.js'
import type { RunningGateway } from '../../program/gateway/create-gateway.js'
import { countRules } from './rules.js'

/** Warns if the gateway has routes without a limit. */
export function unlimitedRoutesWarning(
  { gate, unlimitedRoutes: routes }: RunningGateway,
  { ratelimit }: Config,
): string[] {
  if (countRules(gate.ruleSets) === 0 && ratelimit.missingRuleBehavior === 'ALLOW')
    return ['no request is limited: there are no rules, and no route has a RateLimiter filter.']
  if (routes.length === 0) return []
  return [
    `routes without a limit: ${routes.join(', ')}. Add a RateLimiter filter, or set ratelimit.filterEnabled: true.`,
  ]
}

/** Warns if several workers run with in-memory buckets, which they cannot share. */
export function separateBucketsWarning({ store }: Config, workers: number): string[] {
  if (workers === 1 || store.type !== 'memory') return []
  return [`buckets are in memory, so each of the ${workers} workers enforces its own limits. Use Redis to share them.`]
}
