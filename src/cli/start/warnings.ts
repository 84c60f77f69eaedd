import type { Config } from '../../config/config.js'
import type { RunningGateway } from '../../program/gateway/create-gateway.js'
import { countRules } from './rules.js'

/** Of a gateway in which something is not limited. */
export function unlimited({ gate, unlimitedRoutes: routes }: RunningGateway, { ratelimit }: Config): string[] {
  if (countRules(gate.ruleSets) === 0 && ratelimit.missingRuleBehavior === 'ALLOW')
    return ['nothing is limited: there are no rules, and no route has a RateLimiter filter.']
  if (routes.length === 0) return []
  return [`nothing limits ${routes.join(', ')}: no RateLimiter filter, and ratelimit.filterEnabled is not true.`]
}

/** Of workers that do not count together. */
export function apart({ store }: Config, workers: number): string[] {
  if (workers === 1 || store.type !== 'memory') return []
  return [`buckets are in memory, so each of the ${workers} workers counts by itself. With Redis they count together.`]
}
