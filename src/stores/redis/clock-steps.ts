/**
 * The store's clock may step back, for example when NTP corrects it or a replica with another clock takes over. The store
 * then moves a bucket along as if no time had passed since it was written, because nothing tells it how much did. A process
 * that has seen the bucket before the step has measured that time with its own clock, and can backdate the bucket.
 */
import { cellsOf } from '../../algorithms/index.js'
import type { BucketGroup } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import type { BucketState } from './decode.js'
import type { Backdate } from './work.js'

/** A bucket as it was seen. */
export interface Sighting {
  readonly group: BucketGroup
  /** Per band of the group. */
  readonly states: readonly BucketState[]
  /** The store's tick then. */
  readonly now: number
  /** The local tick at which the store's answer came: since then at most as much time has passed for the store. */
  readonly answeredAt: number
}

/** Clocks that run at slightly different rates are not a step. */
const toleratedTicks = 1_000
const toleratedRate = 0.001

/** The store's tick by now, if its clock has not stepped: at least this. */
export const dueTick = ({ now, answeredAt }: Sighting, here: number): number => now + here - answeredAt

/** Whether the store's clock has stepped back between two sightings, the later of which was asked for at `askedAt`. */
export function hasSteppedBack(before: Sighting, now: number, askedAt: number): boolean {
  const elapsed = askedAt - before.answeredAt
  return elapsed >= 0 && dueTick(before, askedAt) - now > toleratedTicks + toleratedRate * elapsed
}

/** Whether any bucket was moved along when this was seen. */
export const hasMoved = ({ states }: Pick<Sighting, 'states'>): boolean => states.some((state) => state?.length === 5)

/** Whether nothing happened to the buckets between two sightings, except that the later one moved them along. */
export function isUntouched(before: Pick<Sighting, 'group' | 'states'>, states: readonly BucketState[]): boolean {
  return before.group.bands.every((band, place) => {
    const state = states[place]
    return stampOf(band, before.states[place]) === (state?.[4] ?? stampOf(band, state))
  })
}

/**
 * Dates buckets, as they were last seen, to when they were written before the clock stepped back by `back`. The bands that
 * count from the same instant are one claim.
 */
export function backdatesOf(
  key: string,
  { group, states: before }: Sighting,
  states: readonly BucketState[],
  back: number,
): Backdate[] {
  const stamps = group.bands.map((band, place) => stampOf(band, states[place]))
  return [...new Set(stamps)].flatMap((from) => {
    if (from === undefined) return []
    const instants = group.bands.map((band, place) =>
      stamps[place] === from ? (stampOf(band, before[place]) ?? 0) - back : -1,
    )
    return [{ group, key, from, instants }]
  })
}

/** The instant that a bucket counts from. Of a log it is the second number that the script returns. */
const stampOf = (band: Band, state: BucketState | undefined): number | undefined => state?.[cellsOf(band)?.stamp ?? 1]
