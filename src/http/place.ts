import type { Guard, GuardOverrides } from './guard.js'

/** A place with a limit, such as a route: who is asked there, and what that place wants otherwise. */
export interface Place<Native> {
  readonly guard: Guard<Native>
  readonly overrides?: GuardOverrides | undefined
}

/**
 * What a limit of its own applies to: one route, one controller or one method. Always the same object for the same scope,
 * with the same identity in every process.
 */
export interface LimitScope {
  /** The id of the rule, unless the limit gives one. Need not be unique. */
  readonly name: string
  /** Different for different scopes: each has buckets of its own. */
  readonly identity: string
}

/** The place of a limit; undefined if it is not limited. `scopeOf` is called if the limit may be a rule of its own. */
export type PlaceOf<Native> = (limit: unknown, scopeOf: () => LimitScope) => Place<Native> | undefined
