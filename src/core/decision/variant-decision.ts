import type { Charge, ChargeResult, ChargeVariant } from '../bucket-store.js'
import type { Decision } from '../decision.js'
import { FluxGateError } from '../errors.js'
import { composeDecision } from './compose-decision.js'

/**
 * The decision about a forced or partial charge. A forced charge is always allowed: `remaining` and `resetAt` show the bucket
 * afterwards. A partial one has `granted`, in requests of the caller.
 */
export function composeVariant(
  ruleSetId: string | null,
  charge: Charge,
  variant: ChargeVariant,
  result: ChargeResult,
  degraded: boolean,
): Decision {
  if (variant === 'FORCE') return composeDecision(ruleSetId, [charge], result, degraded)
  const { taken = charge.permits, applied } = result
  const granted = result.granted || charge.shadow
  const decision = composeDecision(ruleSetId, [charge], { ...result, granted }, degraded)
  const permits = applied?.[0]?.group.listed === 'ALLOW' || charge.shadow ? charge.permits : taken
  return { ...decision, granted: granted ? permits / charge.group.permits : 0 }
}

export const variantUnsupported = (variant: ChargeVariant): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `${variant === 'FORCE' ? 'force' : 'partial'} needs a store with variants, such as memoryStore or redisStore; this store has none.`,
  )
