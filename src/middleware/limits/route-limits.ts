import { systemClock } from '../../core/clock.js'
import { closeOnError } from '../../core/close-on-error.js'
import { sha256 } from '../../core/runtime/sha256.js'
import { lazyRedisStore } from '../../gate/lazy-redis-store.js'
import { isStore, openStore } from '../../gate/open-store.js'
import type { Guard } from '../../http/guard.js'
import type { GuardOptions, GuardOverrides } from '../../http/guard-options.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { fieldsOf, isObject } from '../../validation/fields.js'
import { noIssues, quoted } from '../../validation/issues.js'
import { wrongValue } from '../../validation/kind.js'
import { identifier } from '../../validation/kinds.js'
import { nameHint } from '../../validation/nearest.js'
import type { Warnings } from '../../validation/warnings.js'
import {
  createGuard,
  handlerOf,
  inlineName,
  type NamedLimits,
  type OwnedGuard,
  type RateLimitOptions,
  requireRuleSet,
  type SingleLimit,
  splitOptions,
  warnOfMissingSources,
} from './create-guard.js'
import { checkEdgeOptions, isOption, permitCount } from './edge-options.js'
import type { InlineRule } from './inline-rules.js'

/**
 * The limit of a route: none (`false`), another rule set or number of permits, an inline rule that replaces the main limit, or
 * replacements of named limits.
 */
export type RouteLimit<Native = unknown> =
  | false
  | GuardOverrides
  | (SingleLimit<Native> & Omit<GuardOptions<Native>, 'ruleSetId'>)
  | NamedRouteLimits<Native>

/** Replaces the named limits of the application on a route; `false` removes one. Other limits still apply. */
export type NamedRouteLimits<Native = unknown> = Readonly<Record<string, false | InlineRule<Native>>>

/**
 * The target of a limit: one route, one controller or one method. Each target is represented by one object, and has the same
 * identity in every process.
 */
export interface LimitScope {
  /** The ID of the rule, unless the limit has one. Need not be unique. */
  readonly name: string
  /** Unique, because each scope has its own buckets. */
  readonly identity: string
}

/** The guard of a route, and the options that the route sets for it. */
export interface RouteGuard<Native, Reply = unknown> {
  readonly guard: Guard<Native, Reply>
  readonly overrides?: GuardOverrides | undefined
}

/** Creates and caches guards: one for all routes, and one per scope with an inline rule. */
export class RouteLimits<Native, Reply = unknown> {
  readonly #options: RateLimitOptions<Native, Reply>
  /** Applies to routes without their own limit. */
  readonly main: RouteGuard<Native, Reply>
  readonly warnings: Warnings
  readonly #guards = new WeakMap<
    LimitScope,
    { readonly limit: unknown; readonly routeGuard: RouteGuard<Native, Reply> | undefined }
  >()
  readonly #owned: OwnedGuard<Native, Reply>[]
  /** The named limits of the options. */
  readonly #named: OwnedGuard<Native, Reply>['rules']
  readonly #stops: (() => void)[] = []
  readonly #closeStore: () => Promise<void>
  #closing: Promise<void> | undefined

  constructor(options: RateLimitOptions<Native, Reply>) {
    checkEdgeOptions(options)
    const { options: shared, close } = withSharedStore(options)
    this.#options = shared
    this.#closeStore = close
    const main = closeOnError(close, () => createGuard(shared))
    this.main = { guard: main.guard }
    this.warnings = main.warnings
    this.#owned = [main]
    this.#named = (shared as Partial<NamedLimits<Native>>).limits && main.rules
  }

  /** Returns the guard of a route, or undefined if the route is not limited. `scopeOf` is called if the route has its own limit. */
  guardOf(limit: unknown, scopeOf: () => LimitScope): RouteGuard<Native, Reply> | undefined {
    if (limit === undefined || limit === true) return this.main
    if (limit === false) return undefined
    const scope = scopeOf()
    const known = this.#guards.get(scope)
    if (known?.limit === limit) return known.routeGuard
    const routeGuard = this.#open(limit as Exclude<RouteLimit<Native>, false>, scope)
    this.#guards.set(scope, { limit, routeGuard })
    return routeGuard
  }

  close(): Promise<void> {
    for (const stop of this.#stops.splice(0)) stop()
    this.#closing ??= Promise.all(this.#owned.map((owned) => owned.close())).then(this.#closeStore)
    return this.#closing
  }

  /** Covers a rule set that only a route uses. */
  #warnOfMissingSources({ ruleSetId }: GuardOverrides): void {
    const handler = handlerOf(this.#options)
    if (handler === undefined || ruleSetId === undefined) return
    requireRuleSet(handler, ruleSetId)
    const stop = warnOfMissingSources(handler, { ...this.#options, ruleSetId })
    if (stop !== undefined) this.#stops.push(stop)
  }

  #open(limit: Exclude<RouteLimit<Native>, false>, scope: LimitScope): RouteGuard<Native, Reply> | undefined {
    if (isNamed(limit)) return this.#openNamed(limit, scope)
    if (!isRule(limit)) {
      checkOverrides(limit, handlerOf(this.#options) !== undefined)
      this.#warnOfMissingSources(limit)
      return { guard: this.main.guard, overrides: limit }
    }
    const { edge, limit: main } = splitOptions(this.#options)
    const store = handlerOf(this.#options) === undefined ? main.store : undefined
    const options = { ...edge, store, id: idOf(scope.name), ...limit } as RateLimitOptions<Native, Reply>
    return this.#own(createGuard(options, limit.id === undefined ? { ruleSetOf: () => ruleSetOf(scope) } : undefined))
  }

  /** Rules that the route does not replace keep the buckets that they have elsewhere. */
  #openNamed(changes: NamedRouteLimits<Native>, scope: LimitScope): RouteGuard<Native, Reply> | undefined {
    const named = this.#named ?? new Map()
    checkNames(Object.keys(changes), [...named.keys()])
    const shared = new Map([...named].filter(([name]) => changes[name] !== false))
    const limits = Object.fromEntries(
      Object.entries(changes).filter(([, rule]) => rule !== false && rule !== undefined),
    )
    if (shared.size === 0) return undefined
    const { edge, limit: storage } = splitOptions(this.#options)
    const options = { ...edge, ...storage, limits } as RateLimitOptions<Native, Reply>
    const hasId = (name: string) => (changes[name] as InlineRule<Native>).id !== undefined
    return this.#own(
      createGuard(options, { shared, ruleSetOf: (name) => (hasId(name) ? inlineName : ruleSetOf(scope)) }),
    )
  }

  #own(guard: OwnedGuard<Native, Reply>): RouteGuard<Native, Reply> {
    this.#owned.push(guard)
    return { guard: guard.guard }
  }
}

/** True for limits by name: an object whose members are rules, or false. */
const isNamed = (limit: unknown): limit is NamedRouteLimits =>
  isObject(limit) &&
  Object.keys(limit).length > 0 &&
  Object.entries(limit).every(([name, value]) => !isOption(name) && (value === false || isObject(value)))

function checkNames(names: readonly string[], known: readonly string[]): void {
  const issues = names
    .filter((name) => !known.includes(name))
    .map((path) => ({
      path,
      message: known.length === 0 ? 'requires the option limits' : `is no named limit; ${nameHint(path, known)}`,
    }))
  if (issues.length > 0) throw configInvalid('Limit of a route', issues)
}

const isRule = (limit: unknown): limit is SingleLimit => isObject(limit) && ('capacity' in limit || 'bands' in limit)

/** Opens the store once, so that all inline rules share it. */
function withSharedStore<Native, Reply>(options: RateLimitOptions<Native, Reply>) {
  if (handlerOf(options) !== undefined || isStore((options as SingleLimit).store))
    return { options, close: async () => {} }
  const store = openStore((options as SingleLimit).store, {
    clock: options.clock ?? systemClock,
    openRedis: lazyRedisStore,
  })
  return { options: { ...options, store }, close: () => store.close() }
}

const overrideKinds = { ruleSetId: identifier, permits: permitCount }

/** Names that an inline rule may have too, for hints. */
const limitNames = [...Object.keys(overrideKinds), 'capacity', 'window', 'windowMs', 'bands']

function checkOverrides(overrides: unknown, hasHandler: boolean): void {
  const issues = noIssues()
  if (!isObject(overrides)) {
    const forms = "false, { ruleSetId, permits }, a rule such as { capacity: 10, window: '1m' }, or rules by name"
    issues.add('document', wrongValue(overrides, forms))
  } else {
    for (const [name, value] of Object.entries(overrides))
      if (value !== undefined && !Object.hasOwn(overrideKinds, name)) issues.add(name, unknownOverride(name))
    const fields = fieldsOf(overrides, '', overrideKinds, issues)
    fields.read('ruleSetId')
    fields.read('permits')
    if (fields.has('ruleSetId') && !hasHandler) fields.report('ruleSetId', 'requires the option gate; pass { gate }')
  }
  if (issues.count > 0) throw configInvalid('Limit of a route', issues.kept)
}

const unknownOverride = (name: string): string =>
  isOption(name) || limitNames.includes(name)
    ? 'must be combined with capacity or bands'
    : `unknown field ${quoted(name)}; ${nameHint(name, limitNames)}`

/** One rule set per scope, because different scope names may map to the same rule ID. Limits with an explicit ID share a set. */
const ruleSetOf = ({ identity }: LimitScope): string => `limit:${sha256(identity, 'hex').slice(0, 32)}`

/** Converts the name of a scope to a rule ID. */
const idOf = (name: string): string => name.replaceAll(/[^A-Za-z0-9._:-]/g, '.').slice(0, 128)
