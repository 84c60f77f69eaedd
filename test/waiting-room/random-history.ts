import { type Random, seededRandom } from '../../src/core/seeded-random.js'

export interface SlotPlan {
  readonly bucket: string
  readonly permits: number
  readonly grantedAt: readonly number[]
  readonly delay: number
  readonly isOrdered: boolean
}

export type Operation =
  | {
      readonly kind: 'ENTER'
      readonly slots: readonly SlotPlan[]
      readonly isHeld: boolean
      readonly onLeave?: Operation
    }
  /** The request that entered as the n-th leaves, if it still waits. */
  | { readonly kind: 'ABORT'; readonly request: number }
  | { readonly kind: 'TURN_AWAY'; readonly slots: readonly SlotPlan[] }
  | { readonly kind: 'PASS'; readonly ms: number }
  /** The clock is set forward or back; timers are not affected. */
  | { readonly kind: 'SET_CLOCK'; readonly byMs: number }
  /** From now on, refunds succeed or fail. */
  | { readonly kind: 'STORE'; readonly isUp: boolean }
  | { readonly kind: 'STORE_REPLIED' }
  /** The event loop turns: what was deferred happens. */
  | { readonly kind: 'TURN' }
  | { readonly kind: 'CLOSE' }

export interface History {
  readonly most: number
  readonly buckets: readonly string[]
  readonly operations: readonly Operation[]
}

const chance = (random: Random, part: number): boolean => random() < part
const below = (random: Random, most: number): number => Math.floor(random() * most)

/** Requests of one history: how many wait for several buckets, have a fixed release time, or need another number of permits. */
interface Mix {
  readonly several: number
  readonly reported: number
  readonly large: number
  /** How often a reply of the store arrives late, so that slots are out of order. */
  readonly late: number
  readonly immediate: number
  readonly nested: number
  readonly clockSteps: number
}

function randomMix(random: Random): Mix {
  const share = (): number => [0, 0, 0.1, 0.5][below(random, 4)] as number
  // Most requests of a process that waits are held, and want one permit.
  const isUniform = chance(random, 0.5)
  const clockSteps = chance(random, 0.3) ? 0.08 : 0
  return {
    several: share(),
    reported: isUniform ? 0 : ([0, 0.1, 0.5, 1][below(random, 4)] as number),
    large: isUniform ? 0 : share(),
    late: share(),
    immediate: chance(random, 0.5) ? 0 : 0.15,
    nested: chance(random, 0.3) ? 0.2 : 0,
    clockSteps,
  }
}

/** Slots as a store grants them: each bucket is a queue that ends later with every request, unless replies are late. */
class RandomSlots {
  readonly #random: Random
  readonly #mix: Mix
  readonly #bands: number
  readonly #ends = new Map<string, number>()
  readonly #kinds = new Map<string, string>()
  readonly buckets: readonly string[]

  constructor(random: Random, mix: Mix) {
    this.#random = random
    this.#mix = mix
    this.#bands = 1 + below(random, 2)
    this.buckets = ['a', 'b', 'c'].slice(0, mix.several > 0 ? 3 : 1 + below(random, 2))
  }

  next(): SlotPlan[] {
    const random = this.#random
    const count = chance(random, this.#mix.several) ? 1 + below(random, this.buckets.length) : 1
    const first = below(random, this.buckets.length)
    const permits = chance(random, this.#mix.large) ? 2 : 1
    return Array.from({ length: count }, (_, i) =>
      this.#slot(this.buckets[(first + i) % this.buckets.length] as string, permits),
    )
  }

  #slot(bucket: string, permits: number): SlotPlan {
    const random = this.#random
    const end = (this.#ends.get(bucket) ?? 0) + 1000 * below(random, 3)
    this.#ends.set(bucket, end)
    const delay = chance(random, this.#mix.immediate)
      ? 0
      : chance(random, 0.7)
        ? 1000 + (end % 9000)
        : 500 * (1 + below(random, 12))
    let at = end - (chance(random, this.#mix.late) ? 500 * below(random, 8) : 0)
    // The order of slots for the same tick is not defined, so these must not differ in anything else.
    const kind = `${permits} ${delay === 0}`
    while ((this.#kinds.get(`${bucket} ${at}`) ?? kind) !== kind) at++
    this.#kinds.set(`${bucket} ${at}`, kind)
    const grantedAt = Array.from({ length: this.#bands }, (_, band) => (band === 0 ? at : Math.floor(at / 2)))
    return { bucket, permits, grantedAt, delay, isOrdered: bucket !== 'b' }
  }
}

export function randomHistory(seed: number): History {
  const random = seededRandom(seed)
  const mix = randomMix(random)
  const slots = new RandomSlots(random, mix)
  const operations: Operation[] = []
  let entered = 0
  const enter = (): Operation => {
    const request: Operation = { kind: 'ENTER', slots: slots.next(), isHeld: !chance(random, mix.reported) }
    entered++
    if (!chance(random, mix.nested)) return request
    const onLeave: Operation = chance(random, 0.5) ? enter() : { kind: 'ABORT', request: below(random, entered + 3) }
    return { ...request, onLeave }
  }
  const length = 10 + below(random, 50)
  while (operations.length < length) {
    const drawn = random()
    if (drawn < 0.45) operations.push(enter())
    else if (drawn < 0.65) operations.push({ kind: 'ABORT', request: below(random, entered + 1) })
    else if (drawn < 0.7) operations.push({ kind: 'TURN_AWAY', slots: slots.next() })
    else if (drawn < 0.8) operations.push({ kind: 'PASS', ms: below(random, 8) * 0.5 })
    else if (drawn < 0.9) operations.push({ kind: 'TURN' })
    else if (drawn < 0.92) operations.push({ kind: 'STORE', isUp: chance(random, 0.5) })
    else if (drawn < 0.95) operations.push({ kind: 'STORE_REPLIED' })
    else if (drawn < 0.955) operations.push({ kind: 'PASS', ms: below(random, 100) })
    if (chance(random, mix.clockSteps)) operations.push({ kind: 'SET_CLOCK', byMs: below(random, 10) * 0.5 - 3.5 })
  }
  if (chance(random, 0.3)) operations.push({ kind: 'CLOSE' })
  operations.push({ kind: 'TURN' }, { kind: 'STORE', isUp: true }, { kind: 'PASS', ms: 1000 }, { kind: 'TURN' })
  return { most: 1 + below(random, 20), buckets: slots.buckets, operations }
}
