import { describeValue, FluxGateError } from '../errors.js'
import { type Costs, maxCapacity, requestCost } from '../rule.js'

/** The permits and the further costs of a check, after validation. */
export interface CheckedCosts {
  readonly permits: number
  readonly costs: Costs
}

/** Validates the costs of a check. `known` are the costs that the rules of the rule set charge. */
export function checkCosts(costs: Costs, permits: number | undefined, known: ReadonlySet<string>): CheckedCosts {
  const checked = checkCostValues(costs, permits)
  for (const name of Object.keys(costs))
    if (name !== requestCost && !known.has(name))
      throw new FluxGateError(
        'FLUXGATE_COST_UNKNOWN',
        `costs.${name.slice(0, 128)} is charged by no rule of the rule set. Its rules charge ${[...known].join(', ') || 'nothing'}.`,
      )
  return checked
}

/** Validates costs without the rules. `requests` may be given as `permits` or in `costs`. */
export function checkCostValues(costs: Costs, permits: number | undefined): CheckedCosts {
  if (typeof costs !== 'object' || costs === null || Array.isArray(costs))
    throw invalid(`costs must be an object such as { tokens: 1200 }; received ${describeValue(costs)}.`)
  for (const [name, value] of Object.entries(costs)) {
    if (!Number.isInteger(value) || value < 0 || value > maxCapacity)
      throw invalid(
        `costs.${name.slice(0, 128)} must be an integer from 0 to ${maxCapacity}; received ${describeValue(value)}.`,
      )
  }
  const requests = Object.hasOwn(costs, requestCost) ? costs[requestCost] : undefined
  if (requests !== undefined && permits !== undefined && requests !== permits)
    throw invalid(
      `costs.requests must equal permits, which means the same; received ${describeValue(requests)} and ${describeValue(permits)}. Remove one.`,
    )
  return { permits: permits ?? requests ?? 1, costs }
}

/** The amount of one cost. Undefined if the request does not have it. */
export const costOf = (costs: Costs | undefined, name: string): number | undefined =>
  costs !== undefined && Object.hasOwn(costs, name) ? costs[name] : undefined

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
