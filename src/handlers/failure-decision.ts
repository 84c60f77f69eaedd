import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { Decision } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'

/** A rejected request may be repeated after this time, when the store or server may have recovered. */
const retryAfterMs = 1_000

/** The decision of a policy, without buckets, while the store or server fails. */
export const failureDecision = (
  isAllowed: boolean,
  nowMs: number,
  details: { readonly ruleSetId: string | null; readonly ruleId?: string },
): Decision =>
  unmeteredDecision(isAllowed, 'STORE_FAILURE', nowMs, {
    ...details,
    degraded: true,
    ...(!isAllowed && { retryAfterMs }),
  })

/** Adds the code of the failure to a decision. */
export const withCause = (decision: Decision, error: unknown): Decision =>
  error instanceof FluxGateError ? { ...decision, degradedCause: error.code } : decision
