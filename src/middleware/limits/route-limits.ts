import { createHash } from 'node:crypto'
import { systemClock } from '../../core/clock.js'
import { orClose } from '../../core/close-on-error.js'
import { isStore, openStore } from '../../gate/open-store.js'
import { redisStoreLater } from '../../gate/redis-store-later.js'
import type { GuardOptions, GuardOverrides } from '../../http/guard.js'
import type { LimitScope, Place } from '../../http/place.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { isObject, openFields } from '../../validation/fields.js'
import { noMistakes } from '../../validation/issues.js'
import { identifier } from '../../validation/kinds.js'
import { checkEdgeOptions, permitCount } from './edge-options.js'
import {
  divided,
  guardOf,
  type LoneLimit,
  type OwnedGuard,
  type RateLimitOptions,
  watchIdentities,
} from './guard-of.js'

/** What one route says: no limit, another rule set or cost, or a rule of its own in place of what holds elsewhere. */
export type RouteLimit<Native = unknown> =
  | false
  | GuardOverrides
  | (LoneLimit & Pick<GuardOptions<Native>, 'permits' | 'skip' | 'customize'>)

/** One guard for all routes, and one for each scope with a rule of its own. */
export class RouteLimits<Native> {
  readonly #options: RateLimitOptions<Native>
  readonly #main: OwnedGuard<Native>
  readonly #elsewhere: Place<Native>
  readonly #places = new WeakMap<LimitScope, { readonly limit: unknown; readonly place: Place<Native> }>()
  readonly #owned: OwnedGuard<Native>[]
  readonly #closeStore: () => Promise<void>
  #closing: Promise<void> | undefined

  constructor(options: RateLimitOptions<Native>) {
    checkEdgeOptions(options)
    const { options: shared, close } = withSharedStore(options)
    this.#options = shared
    this.#closeStore = close
    this.#main = orClose(close, () => guardOf(shared))
    this.#elsewhere = { guard: this.#main.guard }
    this.#owned = [this.#main]
  }

  /** Where no route says otherwise. */
  get main(): Place<Native> {
    return this.#elsewhere
  }

  /** An arrow, since adapters are given it alone. */
  readonly of = (limit: unknown, scopeOf: () => LimitScope): Place<Native> | undefined => {
    if (limit === undefined || limit === true) return this.#elsewhere
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

  /** Of a rule set that only a route names. */
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

const isRule = (limit: unknown): limit is LoneLimit => isObject(limit) && ('capacity' in limit || 'bands' in limit)

/** A store that is made here is made once, however many routes have rules of their own. */
function withSharedStore<Native>(options: RateLimitOptions<Native>) {
  if (options.handler !== undefined || isStore(options.store)) return { options, close: async () => {} }
  const store = openStore(options.store, { clock: options.clock ?? systemClock, openRedis: redisStoreLater })
  return { options: { ...options, store }, close: () => store.close() }
}

function checkOverrides(overrides: unknown, canChoose: boolean): void {
  const mistakes = noMistakes()
  const forms = "false, { ruleSetId, permits }, or a rule such as { capacity: 10, window: '1m' }"
  const fields = openFields(overrides, '', ['ruleSetId', 'permits'], forms, mistakes)
  fields?.read('ruleSetId', identifier)
  fields?.read('permits', permitCount)
  if (fields?.has('ruleSetId') && !canChoose) fields.wrong('ruleSetId', 'needs rules to choose from: { handler: gate }')
  if (mistakes.count > 0) throw configInvalid('The limit of a route', mistakes.kept)
}

/** A set for each scope, because different names may become the same id. Limits with an id are in one set, to be shared. */
const ruleSetOf = ({ identity }: LimitScope): string =>
  `limit:${createHash('sha256').update(identity).digest('hex').slice(0, 32)}`

/** The name of a scope as the id of its rule. */
const idOf = (name: string): string => name.replaceAll(/[^A-Za-z0-9._:-]/g, '.').slice(0, 128)
