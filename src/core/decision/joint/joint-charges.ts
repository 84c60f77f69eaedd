import type { Charge } from '../../bucket-store.js'
import { MissingKey, type Plan } from '../snapshot.js'
import { groupOfLimit, groupWithLimit } from './call-limits.js'
import type { JointCheck } from './joint-check.js'

/** The charges of one check, for the permits that it takes, or for one request if it takes none. */
export interface PartCharges {
  readonly charges: readonly Charge[]
  /** True if the check takes no permits. */
  readonly isFree: boolean
}

/** The charges of each check, or the rule that rejects because its identity is missing. */
export function partChargesOf(plan: Plan, checks: readonly JointCheck[]): readonly PartCharges[] | MissingPart {
  const parts: PartCharges[] = new Array(checks.length)
  for (let i = 0; i < checks.length; i++) {
    const { context, permits = 1, limit } = checks[i] as JointCheck
    const isFree = permits === 0
    const charges = plan.charges(context, isFree ? 1 : permits)
    if (charges instanceof MissingKey) return new MissingPart(charges, i)
    parts[i] = { charges: limit === undefined ? charges : withLimit(plan, charges, limit, permits), isFree }
  }
  return parts
}

/** The check of a request without the key of a rule that has `onMissingKey: DENY`. */
export class MissingPart {
  readonly missing: MissingKey
  readonly index: number

  constructor(missing: MissingKey, index: number) {
    this.missing = missing
    this.index = index
  }
}

function withLimit(
  plan: Plan,
  charges: readonly Charge[],
  limit: NonNullable<JointCheck['limit']>,
  permits: number,
): readonly Charge[] {
  if (charges.length > 0) return charges.map((charge) => ({ ...charge, group: groupWithLimit(charge.group, limit) }))
  if (limit.key === undefined) return charges
  const group = groupOfLimit(plan, limit)
  return [{ group, key: limit.key, permits: permits || 1, maxWaitTicks: 0, policy: 'REJECT', shadow: false }]
}

/**
 * The charges of several parts, each bucket once: a store steps every charge of a decision from the same state. The permits of
 * charges of the same bucket are added.
 */
export function mergedCharges(parts: readonly PartCharges[]): readonly Charge[] {
  const [only] = parts
  if (only !== undefined && parts.length === 1) return only.charges
  const byRule = new Map<string, Map<string, number>>()
  const merged: Charge[] = []
  for (const { charges } of parts)
    for (const charge of charges) {
      const { group, key } = charge
      let byKey = byRule.get(group.ruleId)
      if (byKey === undefined) {
        byKey = new Map()
        byRule.set(group.ruleId, byKey)
      }
      const index = byKey.get(key)
      if (index === undefined) byKey.set(key, merged.push(charge) - 1)
      else {
        const other = merged[index] as Charge
        merged[index] = { ...other, permits: other.permits + charge.permits }
      }
    }
  return merged
}

export const withoutPermits = (parts: readonly PartCharges[]): readonly PartCharges[] =>
  parts.map((part) => ({ ...part, charges: part.charges.map((charge) => ({ ...charge, permits: 0 })) }))
