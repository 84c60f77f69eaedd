import type { Config } from '../../config/config.js'
import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../../core/errors.js'
import type { RuleSet } from '../../core/rule.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import type { GuardOverrides } from '../../http/guard-options.js'
import { forwardProvider } from '../../rules/forward-provider.js'
import type { ValidationIssues } from '../../validation/issues.js'

/** The rule set ID of the n-th inline limit of a route. Unique for any route IDs. */
const ownSetId = (routeId: string, number: number): string =>
  number === 1 ? `route:${routeId}` : `route-${number}:${routeId}`

/** One rule set per inline limit. A rule without an ID gets the ID of its route, which clients see in response headers. */
function ownRuleSet({ id, limits }: RouteDefinition): RuleSet[] {
  const own = limits.flatMap((limit) => (limit.kind === 'RULE' ? [limit] : []))
  const rules = own.map(({ rule, hasId }, index) => {
    if (hasId) return rule
    return { ...rule, id: index === 0 ? id : `${id}-${index + 1}` }
  })
  return rules.map((rule, index) => ({
    id: ownSetId(id, index + 1),
    strategy: 'all',
    rules: [rule],
    isForItsRoute: true,
  }))
}

/** Combines the rules of the rule store with the inline rules of the routes. */
export class GatewayRules implements RuleSetProvider {
  readonly source: string
  readonly watch?: NonNullable<RuleSetProvider['watch']>
  readonly watchKind?: NonNullable<RuleSetProvider['watchKind']>
  readonly canWatch?: NonNullable<RuleSetProvider['canWatch']>
  readonly onEdit?: NonNullable<RuleSetProvider['onEdit']>
  readonly require?: NonNullable<RuleSetProvider['require']>
  readonly #file: RuleSetProvider | undefined
  readonly #defaultRuleSetId: string | undefined
  readonly #filterEnabled: boolean | undefined
  #ofFile: readonly RuleSet[] = []
  #ofRoutes: readonly RuleSet[] = []
  #routes: readonly RouteDefinition[] = []
  /** True once the rule sets have been checked against the routes. Later rule sets must then fit the routes too. */
  #isChecked = false
  /** The last load was rejected because of the routes. */
  #isRejected = false

  constructor(
    file: RuleSetProvider | undefined,
    { defaultRuleSetId, filterEnabled }: Pick<Config['ratelimit'], 'defaultRuleSetId' | 'filterEnabled'>,
    routes: readonly RouteDefinition[],
  ) {
    this.#file = file
    this.#defaultRuleSetId = defaultRuleSetId
    this.#filterEnabled = filterEnabled
    this.source = file?.source ?? 'the routes'
    if (file !== undefined) {
      const { load: _, source: __, ...others } = forwardProvider(file)
      Object.assign(this, others)
    }
    this.take(routes)
  }

  async load(): Promise<readonly RuleSet[]> {
    const loaded = (await this.#file?.load()) ?? []
    const ofFile = loaded.filter(({ candidateOf }) => candidateOf === undefined)
    const taken = ofFile.find(({ id }) => this.#ofRoutes.some((one) => one.id === id))
    if (taken !== undefined)
      throw new FluxGateError(
        'FLUXGATE_RULES_INVALID',
        `${this.source}: rule set ID "${taken.id}" is reserved for an inline limit of a route. Rename the rule set.`,
      )
    this.#rejectRemoved(ofFile)
    this.#ofFile = ofFile
    return [...loaded, ...this.#ofRoutes]
  }

  /** Sets the routes. Returns true if a reload is needed: inline rules changed, or the last load was rejected. */
  take(routes: readonly RouteDefinition[]): boolean {
    const before = JSON.stringify(this.#ofRoutes)
    this.#routes = routes
    this.#ofRoutes = routes.flatMap(ownRuleSet)
    return this.#isRejected || JSON.stringify(this.#ofRoutes) !== before
  }

  /**
   * True if the default rule set limits routes without a RateLimiter filter. `ratelimit.filterEnabled` decides; by default it
   * does if no route has such a filter.
   */
  isFiltered(routes: readonly RouteDefinition[]): boolean {
    return this.#filterEnabled ?? routes.every(({ limits }) => limits.length === 0)
  }

  /** The limits of a route: its RateLimiter filters or, without any, the default rule set if `isFiltered`. */
  limitsOf({ id, limits }: RouteDefinition, isFiltered: boolean): readonly GuardOverrides[] {
    if (limits.length === 0) return isFiltered ? [this.#default] : []
    let own = 0
    return limits.map((limit) => {
      if (limit.kind === 'RULE_SET') return { ruleSetId: limit.ruleSetId, permits: limit.permits }
      own += 1
      return { ruleSetId: ownSetId(id, own) }
    })
  }

  /** Reports filters that reference an unknown rule set. */
  check(routes: readonly RouteDefinition[], issues: ValidationIssues): void {
    this.#isChecked = true
    const known = this.#ofFile.map(({ id }) => id)
    for (const limit of routes.flatMap(({ limits }) => limits)) {
      if (limit.kind === 'RULE' || known.includes(limit.ruleSetId)) continue
      const hint = known.length === 0 ? 'there are no rule sets' : `known rule sets: ${known.join(', ')}`
      const where = this.#file?.source ?? 'rules.yaml, which does not exist'
      issues.add(limit.place, `rule set "${limit.ruleSetId}" does not exist in ${where}; ${hint}`)
    }
  }

  /** A message about the first route that has no limit because the default rule set does not exist, although there are rule sets. */
  missingDefault(routes: readonly RouteDefinition[]): string | undefined {
    const known = this.#ofFile.map(({ id }) => id)
    const fallback = this.#defaultOf(this.#ofFile)
    const route = this.isFiltered(routes) ? routes.find(({ limits }) => limits.length === 0) : undefined
    if (route === undefined || known.length === 0 || known.includes(fallback)) return undefined
    return `rule set "${fallback}", which would limit route "${route.id}", does not exist; known rule sets: ${known.join(', ')}. Name one of them, or set ratelimit.filterEnabled: false`
  }

  /** Throws if a route would lose its limit, because a missing rule set limits nothing. The current rules stay. */
  #rejectRemoved(ofFile: readonly RuleSet[]): void {
    if (!this.#isChecked) return
    const problem = this.#lostLimit(ofFile)
    this.#isRejected = problem !== undefined
    if (problem !== undefined) throw new FluxGateError('FLUXGATE_RULES_INVALID', `${this.source}: ${problem}`)
  }

  #lostLimit(ofFile: readonly RuleSet[]): string | undefined {
    const known = new Set(ofFile.map(({ id }) => id))
    for (const { id, limits } of this.#routes)
      for (const limit of limits)
        if (limit.kind === 'RULE_SET' && !known.has(limit.ruleSetId))
          return `rule set "${limit.ruleSetId}" is missing, but route "${id}" uses it. Restore the rule set, or remove the RateLimiter filter from the route first.`
    const before = this.#defaultOf(this.#ofFile)
    const hadDefault = this.#ofFile.some(({ id }) => id === before)
    // An empty rule store deliberately disables all limits. Several rule sets without a default do not.
    if (!hadDefault || ofFile.length === 0 || known.has(this.#defaultOf(ofFile))) return undefined
    const route = this.#routes.find(({ limits }) => limits.length === 0)
    if (route === undefined || !this.isFiltered(this.#routes)) return undefined
    return `the default rule set, which limits route "${route.id}", no longer exists. Set ratelimit.defaultRuleSetId, or name one rule set "default".`
  }

  /** The default rule set: the configured one, the only one, or `default`. Evaluated per request, because rules may change. */
  readonly #default: GuardOverrides = Object.defineProperty({}, 'ruleSetId', {
    enumerable: true,
    get: () => this.#defaultOf(this.#ofFile),
  })

  #defaultOf([first, second]: readonly RuleSet[]): string {
    return this.#defaultRuleSetId ?? (first !== undefined && second === undefined ? first.id : 'default')
  }
}
