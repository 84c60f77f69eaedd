/**
 * Concurrency: at most `capacity` permits are in use at the same time. A grant takes a hold, which is released, or expires
 * `windowTicks` after it was taken or renewed. A request is never delayed, because the time of a release is unknown: the
 * retry-after of a denied request is the time until enough holds expire, an upper bound.
 */
import { type Buckets, newStep, type Step } from '../core/algorithm.js'
import type { HoldId } from '../core/holds/hold-storage.js'
import type { Band } from '../core/rule.js'
import { answer } from './answer.js'

interface Entry extends HoldId {
  expiresAt: number
  readonly permits: number
}

/** The holds of one bucket, by expiry. `seenAt` is the tick of the last write. */
interface Holds {
  seenAt: number
  entries: Entry[]
}

/** If the clock has stepped back since the last write, all expiries move back with it. */
const shiftOf = (holds: Holds, now: number): number => Math.min(0, now - holds.seenAt)

/** The number of expired entries, which are the first ones. */
function countExpired({ entries }: Holds, now: number): number {
  let count = 0
  while (count < entries.length && (entries[count] as Entry).expiresAt <= now) count++
  return count
}

function sumPermits(entries: readonly Entry[], from: number): number {
  let sum = 0
  for (let i = from; i < entries.length; i++) sum += (entries[i] as Entry).permits
  return sum
}

/** The tick at which `missing` permits have expired, counted from the entry `from`. */
function expiryOf(entries: readonly Entry[], from: number, missing: number): number {
  let left = missing
  let index = from
  while (index < entries.length - 1 && (entries[index] as Entry).permits < left) {
    left -= (entries[index] as Entry).permits
    index++
  }
  return (entries[index] as Entry).expiresAt
}

function stepHolds(holds: Holds | undefined, band: Band, permits: number, now: number, out: Step): void {
  const shift = holds === undefined ? 0 : shiftOf(holds, now)
  const entries = holds?.entries ?? []
  const expired = holds === undefined ? 0 : countExpired(holds, now - shift)
  const free = band.capacity - sumPermits(entries, expired)
  let wait = 0
  if (permits > band.capacity) wait = Number.POSITIVE_INFINITY
  else if (permits > free && permits > 0) wait = expiryOf(entries, expired, permits - free) + shift - now
  const charged = answer(out, wait, permits, 0)
  const expiresAt = now + band.windowTicks
  const last = entries.length > expired ? (entries.at(-1) as Entry).expiresAt + shift : now
  out.remaining = Math.max(0, free - (charged ? permits : 0))
  out.resetAt = charged ? Math.max(last, expiresAt) : last
  out.changes = charged || shift !== 0
  out.next[0] = now
  out.next[1] = shift
  out.next[2] = expired
  out.next[3] = expiresAt
  out.next[4] = charged ? permits : 0
}

function moveBy(holds: Holds, shift: number, now: number): void {
  if (shift === 0) return
  for (const entry of holds.entries) entry.expiresAt += shift
  holds.seenAt = now
}

function insert(entries: Entry[], entry: Entry): void {
  let at = entries.length
  // Usually the last one: another place is needed only if `maxHold` was lowered.
  while (at > 0 && (entries[at - 1] as Entry).expiresAt > entry.expiresAt) at--
  entries.splice(at, 0, entry)
}

/** The buckets of the algorithm CONCURRENCY, by slot. */
export class HoldLists implements Buckets {
  readonly #lists: (Holds | undefined)[] = []
  readonly #scratch = newStep()

  /** `maxWaitTicks` has no effect: the time of a release is unknown, so no request is granted for a later time. */
  step(slot: number, band: Band, permits: number, now: number, _maxWaitTicks: number, out: Step): void {
    stepHolds(this.#lists[slot], band, permits, now, out)
  }

  write(slot: number, next: Float64Array, hold?: HoldId): void {
    this.#lists[slot] ??= { seenAt: 0, entries: [] }
    const list = this.#lists[slot]
    const [seenAt = 0, shift = 0, expired = 0, expiresAt = 0, permits = 0] = next
    list.entries.splice(0, expired)
    moveBy(list, shift, seenAt)
    list.seenAt = seenAt
    if (permits > 0) {
      const { high, low } = hold ?? unknownHold
      insert(list.entries, { high, low, expiresAt, permits })
    }
  }

  /** Only a hold can be released. If the clock has stepped back, the bucket moves to the new time. */
  refund(slot: number, band: Band, _permits: number, now: number): void {
    if (this.#lists[slot] === undefined) return
    this.step(slot, band, 0, now, 0, this.#scratch)
    if (this.#scratch.changes) this.write(slot, this.#scratch.next)
  }

  release(slot: number, hold: HoldId, now: number): boolean {
    return this.#take(slot, hold, now) !== undefined
  }

  renew(slot: number, band: Band, hold: HoldId, now: number): boolean {
    const entry = this.#take(slot, hold, now)
    if (entry === undefined) return false
    entry.expiresAt = now + band.windowTicks
    insert((this.#lists[slot] as Holds).entries, entry)
    return true
  }

  /** Has no effect, because slots are released and not refilled. Limiters reject `force` under CONCURRENCY. */
  force(): void {}

  expiresAt(slot: number): number {
    return this.#lists[slot]?.entries.at(-1)?.expiresAt ?? 0
  }

  clear(slot: number): void {
    this.#lists[slot] = undefined
  }

  /** Removes the entry of a hold, unless it has expired. If the clock has stepped back, the bucket moves to the new time. */
  #take(slot: number, { high, low }: HoldId, now: number): Entry | undefined {
    const list = this.#lists[slot]
    if (list === undefined) return undefined
    moveBy(list, shiftOf(list, now), now)
    const index = list.entries.findIndex((entry) => entry.low === low && entry.high === high)
    if (index < 0 || (list.entries[index] as Entry).expiresAt <= now) return undefined
    list.seenAt = now
    return list.entries.splice(index, 1)[0]
  }
}

/** The id of holds that are taken without one. They cannot be released and expire. */
const unknownHold: HoldId = { high: 0, low: 0 }
