/** The description of a reservation in its record: what its settlement needs, by any process. */
import { type BucketGroup, type Charge, newMemo } from '../../../core/bucket-store.js'
import type { ReservationTerms } from '../../../core/reservations/reservation-storage.js'
import { malformedReply } from '../../../redis/client/replies.js'

/** A group as it is written: the rule's, and that of an override if the key has one. */
type WrittenGroup = Pick<
  BucketGroup,
  'ruleSetId' | 'ruleId' | 'generation' | 'permits' | 'bands' | 'definitions' | 'hasOverrides'
> & {
  readonly override?: Pick<BucketGroup, 'generation' | 'bands' | 'listed'>
}

interface Written extends ReservationTerms {
  readonly charges: readonly (Pick<Charge, 'key' | 'permits' | 'policy' | 'shadow'> & {
    readonly group: WrittenGroup
  })[]
}

/** The terms and the charges of a reservation. */
export interface Described {
  readonly terms: ReservationTerms
  readonly charges: readonly Charge[]
}

/** Returns ASCII text. */
export function describe({ ruleSetId, reason, costs, names }: ReservationTerms, charges: readonly Charge[]): string {
  const written: Written = {
    ruleSetId,
    reason,
    costs,
    names,
    charges: charges.map(({ group, key, permits, policy, shadow }) => ({
      ...{ key, permits, policy, shadow },
      group: writtenGroup(group),
    })),
  }
  // Keys may contain lone surrogates, which cannot be written as UTF-8.
  return JSON.stringify(written).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

export function parseDescription(text: string): Described {
  let written: Written
  try {
    written = JSON.parse(text)
    const { ruleSetId, reason, costs, names } = written
    const charges = written.charges.map(({ group, key, permits, policy, shadow }) => ({
      ...{ key, permits, policy, shadow, maxWaitTicks: 0 },
      group: parsedGroup(group),
    }))
    return { terms: { ruleSetId, reason, costs, names }, charges }
  } catch {
    throw malformedReply('reservation')
  }
}

function writtenGroup(group: BucketGroup): WrittenGroup {
  const { ruleSetId, ruleId, generation, permits, bands, definitions, hasOverrides } = group.insteadOf ?? group
  const rule = {
    ...{ ruleSetId, ruleId, generation, permits, bands },
    ...(definitions && { definitions }),
    ...(hasOverrides && { hasOverrides }),
  }
  if (group.insteadOf === undefined) return rule
  const { listed } = group
  return { ...rule, override: { generation: group.generation, bands: group.bands, ...(listed && { listed }) } }
}

function parsedGroup({ override, ...rule }: WrittenGroup): BucketGroup {
  const group = { ...rule, memo: newMemo() }
  if (override === undefined) return group
  const { ruleSetId, ruleId, permits } = group
  return { ruleSetId, ruleId, permits, ...override, insteadOf: group, memo: newMemo() }
}
