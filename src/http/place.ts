import type { Guard, GuardOverrides } from './guard.js'

/** A place with a limit, such as a route: who is asked there, and what that place wants otherwise. */
export interface Place<Native> {
  readonly guard: Guard<Native>
  readonly overrides?: GuardOverrides | undefined
}

/** The place of what a route says about itself; undefined if it is not limited. `name` is asked for what has none. */
export type PlaceOf<Native> = (limit: unknown, name: () => string) => Place<Native> | undefined
