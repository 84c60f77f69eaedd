import type { Charge } from '../../bucket-store.js'
import { MissingKey, type Plan } from '../snapshot.js'
import { groupOfLimit, groupWithLimit } from './call-limits.js'
import type { JointCheck } from './joint-check.js'

/** The charges of one check. */
export interface PartCharges {
  /** FREE: the charges are those of one request, which is not taken. REFUND: the permits are given back. */
  readonly kind: 'COUNTED' | 'FREE' | 'REFUND'
  readonly charges: readonly Charge[]
}

/** The charges of each check, or the check that is rejected because an identity is missing. */
export function partChargesOf(plan: Plan, checks: readonly JointCheck[]): readonly PartCharges[] | MissingPart {
  const parts: PartCharges[] = new Array(checks.length)
  for (let i = 0; i < checks.length; i++) {
    const { context, permits = 1, limit } = checks[i] as JointCheck
    const amount = permits === 0 ? 1 : Math.abs(permits)
    const charges = plan.charges(context, amount)
    const kind = permits > 0 ? 'COUNTED' : permits === 0 ? 'FREE' : 'REFUND'
    if (!(charges instanceof MissingKey))
      parts[i] = { kind, charges: limit === undefined ? charges : withLimit(plan, charges, limit, amount) }
    else if (kind === 'REFUND') parts[i] = { kind, charges: [] }
    else return new MissingPart(charges, i)
  }
  return parts.length > 1 ? withoutReplaced(plan, parts) : parts
}

/** Removes the charges of rules that other rules of the decision replace. */
function withoutReplaced(plan: Plan, parts: readonly PartCharges[]): readonly PartCharges[] {
  let replaced: Set<string> | undefined
  for (const { charges } of parts)
    for (const { group } of charges) {
      const names = plan.rules.get(group.ruleId)?.rule.replaces
      if (names === undefined) continue
      replaced ??= new Set()
      for (const name of names) replaced.add(name)
    }
  const ids = replaced
  if (ids === undefined) return parts
  return parts.map((part) => ({ ...part, charges: part.charges.filter(({ group }) => !ids.has(group.ruleId)) }))
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
  return [{ group, key: limit.key, permits, maxWaitTicks: 0, policy: 'REJECT', shadow: false }]
}

/**
 * The charges of several parts, each bucket once: a store steps every charge of a decision from the same state. The permits of
 * charges of the same bucket are added, unless they are free.
 */
export function mergedCharges(parts: readonly PartCharges[]): readonly Charge[] {
  const [only] = parts
  if (only !== undefined && parts.length === 1) return only.charges
  const byRule = new Map<string, Map<string, number>>()
  const merged: Charge[] = []
  for (const { kind, charges } of parts)
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
        const permits = kind === 'FREE' ? Math.max(other.permits, charge.permits) : other.permits + charge.permits
        merged[index] = { ...other, permits }
      }
    }
  return merged
}

/** The charges that read the current state. */
export const withoutPermits = (charges: readonly Charge[]): readonly Charge[] =>
  charges.map((charge) => ({ ...charge, permits: 0 }))
