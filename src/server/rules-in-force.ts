import { type FluxGateError, messageOf } from '../core/errors.js'
import type { RuleStore } from '../core/rule-store.js'
import type { ApiParts } from './api-parts.js'
import { ApiProblem } from './request/api-problem.js'

/** Where rules are edited, for routes that need it. */
export function rulesOf({ rules }: ApiParts): RuleStore {
  if (rules !== undefined) return rules
  throw new ApiProblem(
    'FLUXGATE_NOT_SUPPORTED',
    'The rules of this server are part of a program. Keep them in a file, in Redis or in MongoDB to see and edit them here.',
  )
}

/** Resolves once decisions are made by the rules as they are kept; what keeps them from it is not hidden. */
export async function putInForce({ gate }: ApiParts, before: string): Promise<void> {
  try {
    await gate.reload()
  } catch (error) {
    const { errors = [] } = error as Partial<FluxGateError>
    throw new ApiProblem('FLUXGATE_RULES_NOT_IN_FORCE', `${before} ${messageOf(error)}`, { errors })
  }
}
