import { FluxGateError } from '../core/errors.js'
import { keyFieldsOf, type Rule, type RuleSet } from '../core/rule.js'
import { eachInSteps, finish, inSlices, manyPerStep, type Steps } from '../core/scheduling/steps.js'
import type { Warnings } from '../validation/warnings.js'
import type { GuardOptions } from './guard-options.js'

/** The options that provide identities of requests. */
export type IdentitySources = Pick<GuardOptions, 'userIdHeader' | 'apiKeyHeader'> & {
  readonly customize?: unknown
  readonly key?: unknown
}

/** Rule sets that may change, such as the rule sets of a gate. */
export interface WatchedRules {
  readonly ruleSets: readonly RuleSet[]
  readonly warnings: Warnings
  on(name: 'reload', listener: () => void): () => void
}

const identities = [
  { field: 'USER_ID', condition: 'userId', option: 'userIdHeader', what: 'a user id' },
  { field: 'API_KEY', condition: 'apiKey', option: 'apiKeyHeader', what: 'an API key' },
] as const

/** Throws if a rule uses an identity for which no source is configured. */
export function requireSources(rule: Rule, sources: IdentitySources): void {
  const [problem] = problemsOf(rule, sources)
  if (problem !== undefined)
    throw new FluxGateError('FLUXGATE_IDENTITY_UNCONFIGURED', `Options of rateLimit: the rule ${problem}`)
}

/**
 * Warns once about each current rule that uses an identity without a source, now and after each reload. `isUsed` selects the
 * rule sets to check. Returns a function that stops watching.
 */
export function watchIdentitySources(
  rules: WatchedRules,
  sources: IdentitySources,
  isUsed: (ruleSet: RuleSet, all: readonly RuleSet[]) => boolean,
): () => void {
  function* warn(): Steps<void> {
    for (const { id, rules: members } of rules.ruleSets.filter((set) => isUsed(set, rules.ruleSets))) {
      const warnOfRule = (rule: Rule): void => {
        for (const problem of problemsOf(rule, sources))
          rules.warnings.warn('FLUXGATE_IDENTITY_UNCONFIGURED', `Rule "${rule.id}" of rule set "${id}" ${problem}`)
      }
      yield* eachInSteps(members, warnOfRule, manyPerStep)
    }
  }
  finish(warn())
  return rules.on('reload', () => void inSlices(warn()))
}

function problemsOf(rule: Rule, sources: IdentitySources): readonly string[] {
  if (!rule.enabled || sources.customize !== undefined) return []
  // `key` replaces the identities that rules count by, but not those in their conditions.
  const fields = sources.key === undefined ? keyFieldsOf(rule) : []
  return identities.flatMap(({ field, condition, option, what }) => {
    const isCounted = fields.includes(field)
    if (sources[option] !== undefined || !(isCounted || rule.when.some((one) => one.field === condition))) return []
    const use = isCounted ? `counts by ${field}` : `has a condition on ${condition}`
    return [
      `${use}, but requests have no source for ${what}. Set ${option} to the header that contains it, or use customize.`,
    ]
  })
}
