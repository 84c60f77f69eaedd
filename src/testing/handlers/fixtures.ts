/** Fixtures that the parts of the handler contract share. */
import type { Handler } from '../../core/handler.js'
import type { ManualClock } from '../manual-clock.js'

/** The handler of one contract test. */
export interface HandlerFixture {
  /** The handler under test. */
  readonly handler: Handler
  /** Called after the test. */
  close(): Promise<void>
}

/** The rules and the clock that the handler of a contract test must use. */
export interface HandlerSetup {
  /** Rule set documents, as in a rules file. */
  readonly ruleSets: readonly object[]
  /** The clock that the handler must use. */
  readonly clock: ManualClock
}

/** Creates the handler of one contract test. */
export type HandlerFactory = (setup: HandlerSetup) => HandlerFixture | Promise<HandlerFixture>

/** Registers a test with a handler for the given rule sets. */
export type WithRules = (
  title: string,
  ruleSets: readonly object[],
  test: (handler: Handler, clock: ManualClock) => Promise<void>,
) => void

/** Two requests per minute and user. */
export const perUser = {
  id: 'per-user',
  limitScope: 'USER_ID',
  bands: [{ label: 'min', capacity: 2, window: '1m' }],
}
