import type { Config } from '../../config/config.js'
import { FluxGateError } from '../../core/errors.js'
import type { RuleSet } from '../../core/rule.js'
import type { RuleSetProvider } from '../../core/rule-set-provider.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import type { GuardOverrides } from '../../http/guard.js'
import { forwardedRules } from '../../rules/forwarded-rules.js'
import type { Mistakes } from '../../validation/issues.js'

/** The rule set of the first, second … limit that a route has itself; another for every route, whatever routes are called. */
const ownSetId = (routeId: string, number: number): string =>
  number === 1 ? `route:${routeId}` : `route-${number}:${routeId}`

/** A rule without an id of its own is called like its route: that is what clients read in their headers. */
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

/** The rules of the file, if there is one, and those of the routes. Routes change when the configuration does. */
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
  /** The rule sets in force have been compared with the routes, so later ones have to fit the routes too. */
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
      const { load: _, source: __, ...others } = forwardedRules(file)
      Object.assign(this, others)
    }
    this.take(routes)
  }

  async load(): Promise<readonly RuleSet[]> {
    const ofFile = (await this.#file?.load()) ?? []
    const taken = ofFile.find(({ id }) => this.#ofRoutes.some((one) => one.id === id))
    if (taken !== undefined)
      throw new FluxGateError(
        'FLUXGATE_RULES_INVALID',
        `${this.source}: the rule set "${taken.id}" has the name of a route's own. Give it another.`,
      )
    this.#rejectRemoved(ofFile)
    this.#ofFile = ofFile
    return [...ofFile, ...this.#ofRoutes]
  }

  /** Returns true if the rules have to be loaded again: those of the routes changed, or did not fit the routes before. */
  take(routes: readonly RouteDefinition[]): boolean {
    const before = JSON.stringify(this.#ofRoutes)
    this.#routes = routes
    this.#ofRoutes = routes.flatMap(ownRuleSet)
    return this.#isRejected || JSON.stringify(this.#ofRoutes) !== before
  }

  /** True if the default rule set limits the routes without a RateLimiter filter: as configured, or if no route has one. */
  isFiltered(routes: readonly RouteDefinition[]): boolean {
    return this.#filterEnabled ?? routes.every(({ limits }) => limits.length === 0)
  }

  /** The limits of a route: its own filters, or else the default rule set, if `isFiltered`. */
  limitsOf({ id, limits }: RouteDefinition, isFiltered: boolean): readonly GuardOverrides[] {
    if (limits.length === 0) return isFiltered ? [this.#default] : []
    let own = 0
    return limits.map((limit) => {
      if (limit.kind === 'RULE_SET') return { ruleSetId: limit.ruleSetId, permits: limit.permits }
      own += 1
      return { ruleSetId: ownSetId(id, own) }
    })
  }

  /** Reports the filters that name a rule set which does not exist. */
  check(routes: readonly RouteDefinition[], mistakes: Mistakes): void {
    this.#isChecked = true
    const known = this.#ofFile.map(({ id }) => id)
    for (const limit of routes.flatMap(({ limits }) => limits)) {
      if (limit.kind === 'RULE' || known.includes(limit.ruleSetId)) continue
      const there = known.length === 0 ? 'there is none' : `there is ${known.join(', ')}`
      const where = this.#file?.source ?? 'rules.yaml, which does not exist'
      mistakes.add(limit.place, `no rule set "${limit.ruleSetId}" in ${where}; ${there}`)
    }
  }

  /** Throws if a route would lose its limit: a rule set that does not exist limits nothing. The rules in force stay. */
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
          return `the rule set "${limit.ruleSetId}" is missing, and the route "${id}" needs it. Restore the rule set, or remove the RateLimiter filter from the route first.`
    const before = this.#defaultOf(this.#ofFile)
    const hadDefault = this.#ofFile.some(({ id }) => id === before)
    // No rule sets at all is a deliberate way to switch limits off; several of which none is the default is not.
    if (!hadDefault || ofFile.length === 0 || known.has(this.#defaultOf(ofFile))) return undefined
    const route = this.#routes.find(({ limits }) => limits.length === 0)
    if (route === undefined || !this.isFiltered(this.#routes)) return undefined
    return `there is no default rule set any more, and it limits the route "${route.id}". Set ratelimit.defaultRuleSetId, or name one rule set "default".`
  }

  /** The one that is configured, the only one of the file, or the one called default; asked for each request. */
  readonly #default: GuardOverrides = Object.defineProperty({}, 'ruleSetId', {
    enumerable: true,
    get: () => this.#defaultOf(this.#ofFile),
  })

  #defaultOf([first, second]: readonly RuleSet[]): string {
    return this.#defaultRuleSetId ?? (first !== undefined && second === undefined ? first.id : 'default')
  }
}
