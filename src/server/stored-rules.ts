import type { RuleStore } from '../core/contracts/rule-store.js'
import { type FluxGateError, messageOf } from '../core/errors.js'
import type { ApiParts } from './parts.js'
import { ApiProblem } from './request/api-problem.js'

/** The rule store, for routes that need it. Throws 501 if the server has no rule store. */
export function requireRuleStore({ rules }: ApiParts): RuleStore {
  if (rules !== undefined) return rules
  throw new ApiProblem(
    'FLUXGATE_NOT_SUPPORTED',
    'The rules of this server are defined in code. Keep them in a file, in Redis or in MongoDB to view and edit them here.',
  )
}

/** Reloads the gate and resolves once the stored rules are in effect. Throws 409 with the reason if they cannot be loaded. */
export async function applyStoredRules({ gate }: ApiParts, before: string): Promise<void> {
  try {
    await gate.reload()
  } catch (error) {
    const { errors = [] } = error as Partial<FluxGateError>
    throw new ApiProblem('FLUXGATE_RULES_NOT_IN_FORCE', `${before} ${messageOf(error)}`, { errors })
  }
}
