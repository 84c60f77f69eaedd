/** What the parts of the contract of handlers have in common. */
import type { Handler } from '../../core/handler.js'
import type { ManualClock } from '../manual-clock.js'

export interface HandlerBed {
  readonly handler: Handler
  /** Called after the test. */
  close(): Promise<void>
}

export interface HandlerGiven {
  /** As a rule file has them. */
  readonly ruleSets: readonly object[]
  readonly clock: ManualClock
}

export type HandlerFactory = (given: HandlerGiven) => HandlerBed | Promise<HandlerBed>

/** Names a test, and gives it a handler for some rule sets. */
export type WithRules = (
  title: string,
  ruleSets: readonly object[],
  test: (handler: Handler, clock: ManualClock) => Promise<void>,
) => void

/** Two a minute for each user. */
export const perUser = {
  id: 'per-user',
  limitScope: 'USER_ID',
  bands: [{ label: 'min', capacity: 2, window: '1m' }],
}
