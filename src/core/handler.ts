import type { Decision } from './decision.js'
import type { RequestContext } from './request-context.js'

export interface CheckOptions {
  /** Left out: the configured default; else the only rule set there is; else the one called `default`. */
  readonly ruleSetId?: string | undefined
  readonly permits?: number | undefined
  readonly peek?: boolean | undefined
  /** Aborting while a delayed request has not been let go gives its permits back. */
  readonly signal?: AbortSignal | undefined
}

/** Who answers: this process (`StandaloneHandler`), or a server that is asked over HTTP. */
export interface Handler {
  check(context: RequestContext, options?: CheckOptions): Promise<Decision>
  /** Gives back what a check with the same arguments took. */
  refund(context: RequestContext, options?: Pick<CheckOptions, 'ruleSetId' | 'permits'>): Promise<void>
}
