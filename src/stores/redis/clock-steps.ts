/**
 * The store's clock may step back, for example when NTP corrects it or a replica with another clock takes over. The store
 * cannot know how much time has passed since a bucket was written, and assumes that none has. A process that has seen the
 * bucket before the step has measured that time with its own clock and can backdate the bucket.
 */
import { cellsOf } from '../../algorithms/index.js'
import type { BucketGroup } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import type { BucketState } from './decode.js'
import type { Backdate } from './operation.js'

/** The state of a bucket at a certain time. */
export interface Sighting {
  readonly group: BucketGroup
  /** Per band of the group. */
  readonly states: readonly BucketState[]
  /** The tick of the store. */
  readonly now: number
  /** The local tick at which the reply arrived. At most as much time has passed for the store since then. */
  readonly answeredAt: number
}

/** A difference within these bounds is clock drift, not a step. */
const toleratedTicks = 1_000
const toleratedRate = 0.001

/** The minimum tick of the store now, if its clock has not stepped back. */
export const dueTick = ({ now, answeredAt }: Sighting, here: number): number => now + here - answeredAt

/** True if the store's clock has stepped back since `before`. `sentAt` is the local tick at which the later call was sent. */
export function hasSteppedBack(before: Sighting, now: number, sentAt: number): boolean {
  const elapsed = sentAt - before.answeredAt
  return elapsed >= 0 && dueTick(before, sentAt) - now > toleratedTicks + toleratedRate * elapsed
}

/** True if the store has moved a bucket to its new time. */
export const hasMoved = ({ states }: Pick<Sighting, 'states'>): boolean => states.some((state) => state?.length === 5)

/** True if the buckets were not changed between two sightings, except by being moved to the new time. */
export function isUntouched(before: Pick<Sighting, 'group' | 'states'>, states: readonly BucketState[]): boolean {
  return before.group.bands.every((band, index) => {
    const state = states[index]
    return stampOf(band, before.states[index]) === (state?.[4] ?? stampOf(band, state))
  })
}

/**
 * Returns the corrections for buckets that were last written before the clock stepped back by `back` ticks. Bands with the same
 * timestamp share one claim.
 */
export function backdatesOf(
  key: string,
  { group, states: before }: Sighting,
  states: readonly BucketState[],
  back: number,
): Backdate[] {
  const stamps = group.bands.map((band, index) => stampOf(band, states[index]))
  return [...new Set(stamps)].flatMap((from) => {
    if (from === undefined) return []
    const instants = group.bands.map((band, index) =>
      stamps[index] === from ? (stampOf(band, before[index]) ?? 0) - back : -1,
    )
    return [{ group, key, from, instants }]
  })
}

/** The timestamp of a bucket. For a log it is the second number that the script returns. */
const stampOf = (band: Band, state: BucketState | undefined): number | undefined => state?.[cellsOf(band)?.stamp ?? 1]
