/**
 * Reservations are kept by the hundred thousand, so each holds only what differs from others: its keys, and its numbers in one
 * array. The rest, such as the rules and the names of the costs, is shared by all reservations with the same rules.
 */
import {
  type BandResult,
  type BucketGroup,
  type Charge,
  type ChargeResult,
  chargeOf,
  type RuleCharge,
} from '../../core/bucket-store.js'
import type { ChargedCost, ReservationTerms, ReservedState } from '../../core/reservations/reservation-storage.js'

/** The part that reservations share. */
interface SharedTerms extends ReservationTerms {
  readonly rules: readonly RuleCharge[]
}

type ReservedCosts = Pick<ReservationTerms, 'costs' | 'names'>

/** A `ReservedState` with the terms of its reservation. */
export interface PackedState {
  readonly terms: SharedTerms
  /** The key of all charges, or the keys if they differ. */
  readonly keys: string | readonly string[]
  /** The time of the decision, whether it was granted, the permits of each charge, and `numbersPerBand` numbers for each band. */
  readonly numbers: readonly number[]
}

const numbersBeforeCharges = 2
const numbersPerBand = 5
/** Bits of the first number of a band. */
const allowedBit = 1
const bannedBit = 2

/** Packs states, and finds the terms that they share. */
export class ReservationPacker {
  /** The terms that were used last, by the group of the first charge. Holds no group that is not used elsewhere. */
  readonly #termsOf = new WeakMap<BucketGroup, SharedTerms>()
  #termsWithoutCharges: SharedTerms | undefined

  pack({ ruleSetId, reason, charges, result }: ReservedState, { costs, names }: ReservedCosts): PackedState {
    const terms = this.#shared({ ruleSetId, reason, rules: charges, costs, names })
    return { terms, keys: keysOf(charges), numbers: numbersOf(charges, result) }
  }

  #shared(terms: SharedTerms): SharedTerms {
    const group = terms.rules[0]?.group
    const known = group === undefined ? this.#termsWithoutCharges : this.#termsOf.get(group)
    if (known !== undefined && hasSameTerms(known, terms)) return known
    const rules = terms.rules.map(({ group, maxWaitTicks, policy, shadow }) => ({
      group,
      maxWaitTicks,
      policy,
      shadow,
    }))
    const kept = { ...terms, rules }
    if (group === undefined) this.#termsWithoutCharges = kept
    else this.#termsOf.set(group, kept)
    return kept
  }
}

export function unpack({ terms, keys, numbers }: PackedState): ReservedState {
  const { ruleSetId, reason, rules } = terms
  const charges = rules.map((rule, i): Charge => {
    const key = typeof keys === 'string' ? keys : (keys[i] as string)
    return chargeOf(rule, key, numbers[numbersBeforeCharges + i] as number)
  })
  const bands: BandResult[] = []
  const first = numbersBeforeCharges + rules.length
  for (let at = first; at < numbers.length; at += numbersPerBand) bands.push(bandAt(numbers, at))
  const [now = 0, granted] = numbers
  return { ruleSetId, reason, charges, result: { granted: granted === 1, now, bands } }
}

function numbersOf(charges: readonly Charge[], { granted, now, bands }: ChargeResult): readonly number[] {
  // Created with its exact length, because V8 keeps room for more behind a list that grows.
  const numbers = new Array<number>(numbersBeforeCharges + charges.length + numbersPerBand * bands.length)
  let at = 0
  numbers[at++] = now
  numbers[at++] = granted ? 1 : 0
  for (const { permits } of charges) numbers[at++] = permits
  for (const { allowed, banned, delay, retryAfter, remaining, resetAt } of bands) {
    numbers[at++] = (allowed ? allowedBit : 0) + (banned === true ? bannedBit : 0)
    numbers[at++] = delay
    numbers[at++] = retryAfter
    numbers[at++] = remaining
    numbers[at++] = resetAt
  }
  return numbers
}

function bandAt(numbers: readonly number[], at: number): BandResult {
  const flags = numbers[at] as number
  const band = {
    allowed: (flags & allowedBit) !== 0,
    delay: numbers[at + 1] as number,
    retryAfter: numbers[at + 2] as number,
    remaining: numbers[at + 3] as number,
    resetAt: numbers[at + 4] as number,
  }
  return (flags & bannedBit) === 0 ? band : { ...band, banned: true }
}

function keysOf(charges: readonly Charge[]): string | readonly string[] {
  const first = charges[0]?.key ?? ''
  return charges.every(({ key }) => key === first) ? first : charges.map(({ key }) => key)
}

const hasSameTerms = (one: SharedTerms, other: SharedTerms): boolean =>
  one.ruleSetId === other.ruleSetId &&
  one.reason === other.reason &&
  haveSame(one.rules, other.rules, isSameRule) &&
  haveSame(one.costs, other.costs, isSameCost) &&
  haveSame(one.names, other.names, Object.is)

const haveSame = <T>(ones: readonly T[], others: readonly T[], isSame: (one: T, other: T) => boolean): boolean =>
  ones.length === others.length && ones.every((one, i) => isSame(one, others[i] as T))

const isSameRule = (one: RuleCharge, other: RuleCharge): boolean =>
  one.group === other.group &&
  one.maxWaitTicks === other.maxWaitTicks &&
  one.policy === other.policy &&
  one.shadow === other.shadow

const isSameCost = (one: ChargedCost, other: ChargedCost): boolean =>
  one.name === other.name && one.permits === other.permits
