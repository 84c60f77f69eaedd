/** The parts of the start report: the rules in use and warnings about limits. */
import type { Config } from '../../config/config.js'
import type { RuleSet } from '../../core/rule.js'
import { isOpenTelemetryMissing } from '../../core/tracing/open-telemetry.js'
import type { RunningGateway } from '../../program/gateway/create-gateway.js'
import { displayPath } from '../output/output.js'
import type { StartOptions } from './options.js'

/** The name of the rules in reports: the path of a rules file, or the source of a rule store. */
export function rulesLabel({ rules: path }: StartOptions, config: Config, source: string) {
  const { type } = config.rules
  if (path === undefined && type !== 'file') return { rules: source, rulesType: type }
  return { rules: displayPath(path ?? config.rules.path), rulesType: 'file' as const }
}

export const countRules = (ruleSets: readonly RuleSet[]): number =>
  ruleSets.reduce((sum, { rules }) => sum + rules.length, 0)

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

/** Warns if an OpenTelemetry SDK was loaded with `--import`, but its API cannot be loaded from this package. */
export function openTelemetryWarning(): string[] {
  if (!isOpenTelemetryMissing()) return []
  return [
    'an OpenTelemetry SDK is loaded, but decisions are not reported to it: @opentelemetry/api is not installed next to fluxgate-js.',
  ]
}
