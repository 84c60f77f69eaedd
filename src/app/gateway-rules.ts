import { FluxGateError } from '../core/errors.js'
import type { RuleSet } from '../core/rule.js'
import type { RuleSetProvider } from '../core/rule-set-provider.js'
import type { GuardOverrides } from '../http/guard.js'
import { forwardedRules } from '../rules/forwarded-rules.js'
import type { Mistakes } from '../rules/mistakes.js'
import type { RouteDefinition } from './gateway-schema.js'

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
  #ofFile: readonly RuleSet[] = []
  #ofRoutes: readonly RuleSet[] = []

  constructor(
    file: RuleSetProvider | undefined,
    defaultRuleSetId: string | undefined,
    routes: readonly RouteDefinition[],
  ) {
    this.#file = file
    this.#defaultRuleSetId = defaultRuleSetId
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
    this.#ofFile = ofFile
    return [...ofFile, ...this.#ofRoutes]
  }

  /** Whether the rules of these routes are others than before; they hold after the next load. */
  take(routes: readonly RouteDefinition[]): boolean {
    const before = JSON.stringify(this.#ofRoutes)
    this.#ofRoutes = routes.flatMap(ownRuleSet)
    return JSON.stringify(this.#ofRoutes) !== before
  }

  /** What limits a route: its own filters, or else the default rule set, if `isFiltered` says so. */
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
    const known = this.#ofFile.map(({ id }) => id)
    for (const limit of routes.flatMap(({ limits }) => limits)) {
      if (limit.kind === 'RULE' || known.includes(limit.ruleSetId)) continue
      const there = known.length === 0 ? 'there is none' : `there is ${known.join(', ')}`
      const where = this.#file?.source ?? 'rules.yaml, which does not exist'
      mistakes.add(limit.place, `no rule set "${limit.ruleSetId}" in ${where}; ${there}`)
    }
  }

  /** The one that is configured, the only one of the file, or the one called default; asked for each request. */
  readonly #default: GuardOverrides = Object.defineProperty({}, 'ruleSetId', {
    enumerable: true,
    get: () => this.#defaultRuleSetId ?? (this.#ofFile.length === 1 ? this.#ofFile[0]?.id : 'default'),
  })
}
