import { createHash } from 'node:crypto'
import { systemClock } from '../../core/clock.js'
import { closeOnError } from '../../core/close-on-error.js'
import { isStore, openStore } from '../../gate/open-store.js'
import { redisStoreLater } from '../../gate/redis-store-later.js'
import type { GuardOptions, GuardOverrides } from '../../http/guard.js'
import type { LimitScope, Place } from '../../http/place.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { isObject, openFields } from '../../validation/fields.js'
import { noIssues } from '../../validation/issues.js'
import { identifier } from '../../validation/kinds.js'
import { checkEdgeOptions, permitCount } from './edge-options.js'
import {
  divided,
  guardOf,
  type OwnedGuard,
  type RateLimitOptions,
  type SingleLimit,
  watchIdentities,
} from './guard-of.js'

/** The limit of a route: none (`false`), another rule set or number of permits, or an inline rule that replaces the main limit. */
export type RouteLimit<Native = unknown> =
  | false
  | GuardOverrides
  | (SingleLimit & Pick<GuardOptions<Native>, 'permits' | 'skip' | 'customize'>)

/** Creates and caches guards: one for all routes, and one per scope with an inline rule. */
export class RouteLimits<Native> {
  readonly #options: RateLimitOptions<Native>
  readonly #main: OwnedGuard<Native>
  readonly #mainPlace: Place<Native>
  readonly #places = new WeakMap<LimitScope, { readonly limit: unknown; readonly place: Place<Native> }>()
  readonly #owned: OwnedGuard<Native>[]
  readonly #closeStore: () => Promise<void>
  #closing: Promise<void> | undefined

  constructor(options: RateLimitOptions<Native>) {
    checkEdgeOptions(options)
    const { options: shared, close } = withSharedStore(options)
    this.#options = shared
    this.#closeStore = close
    this.#main = closeOnError(close, () => guardOf(shared))
    this.#mainPlace = { guard: this.#main.guard }
    this.#owned = [this.#main]
  }

  /** The limit of routes without their own. */
  get main(): Place<Native> {
    return this.#mainPlace
  }

  /** The limit of a route; undefined if the route is not limited. An arrow function, because adapters receive it unbound. */
  readonly of = (limit: unknown, scopeOf: () => LimitScope): Place<Native> | undefined => {
    if (limit === undefined || limit === true) return this.#mainPlace
    if (limit === false) return undefined
    const scope = scopeOf()
    const known = this.#places.get(scope)
    if (known?.limit === limit) return known.place
    const place = this.#open(limit as Exclude<RouteLimit<Native>, false>, scope)
    this.#places.set(scope, { limit, place })
    return place
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#owned.map((owned) => owned.close())).then(this.#closeStore)
    return this.#closing
  }

  /** Watches a rule set that only a route uses. */
  #watchIdentities({ ruleSetId }: GuardOverrides): void {
    const { handler } = this.#options
    if (handler === undefined || ruleSetId === undefined) return
    const stop = watchIdentities(handler, { ...this.#options, ruleSetId })
    if (stop !== undefined) this.#owned.push({ guard: this.#main.guard, close: async () => stop() })
  }

  #open(limit: Exclude<RouteLimit<Native>, false>, scope: LimitScope): Place<Native> {
    if (!isRule(limit)) {
      checkOverrides(limit, this.#options.handler !== undefined)
      this.#watchIdentities(limit)
      return { guard: this.#main.guard, overrides: limit }
    }
    const { edge, limit: main } = divided(this.#options)
    const store = this.#options.handler === undefined ? main.store : undefined
    const options = { ...edge, store, id: idOf(scope.name), ...limit } as RateLimitOptions<Native>
    const own = guardOf<Native>(options, limit.id === undefined ? ruleSetOf(scope) : undefined)
    this.#owned.push(own)
    return { guard: own.guard }
  }
}

const isRule = (limit: unknown): limit is SingleLimit => isObject(limit) && ('capacity' in limit || 'bands' in limit)

/** Opens the store once, so that all inline rules share it. */
function withSharedStore<Native>(options: RateLimitOptions<Native>) {
  if (options.handler !== undefined || isStore(options.store)) return { options, close: async () => {} }
  const store = openStore(options.store, { clock: options.clock ?? systemClock, openRedis: redisStoreLater })
  return { options: { ...options, store }, close: () => store.close() }
}

function checkOverrides(overrides: unknown, hasHandler: boolean): void {
  const issues = noIssues()
  const forms = "false, { ruleSetId, permits }, or a rule such as { capacity: 10, window: '1m' }"
  const fields = openFields(overrides, '', ['ruleSetId', 'permits'], forms, issues)
  fields?.read('ruleSetId', identifier)
  fields?.read('permits', permitCount)
  if (fields?.has('ruleSetId') && !hasHandler)
    fields.wrong('ruleSetId', 'requires the option handler; pass { handler: gate }')
  if (issues.count > 0) throw configInvalid('Limit of a route', issues.kept)
}

/** One rule set per scope, because different scope names may map to the same rule ID. Limits with an explicit ID share a set. */
const ruleSetOf = ({ identity }: LimitScope): string =>
  `limit:${createHash('sha256').update(identity).digest('hex').slice(0, 32)}`

/** Converts the name of a scope to a rule ID. */
const idOf = (name: string): string => name.replaceAll(/[^A-Za-z0-9._:-]/g, '.').slice(0, 128)
