/**
 * What the script answers, from numbers. The layout is described where it is written: in consume.lua.
 */
import { endianness } from 'node:os'
import {
  type BandResult,
  type BucketGroup,
  bandCount,
  type Demand,
  demandOf,
  type LeaseResult,
} from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import type { BelievedDemand } from './override-beliefs.js'
import type { Lookup, Work } from './redis-work.js'

const [granted, unable, allowed] = [1, 2, 3]

/**
 * The numbers of a bucket, as it was when it refused; of a log, the tick until which it stays the same. Undefined if nobody
 * has used it, null if it is not told.
 */
export type BucketState = readonly number[] | undefined | null

export interface Answer extends LeaseResult {
  /** Per band, if the work was a charge that was refused. */
  readonly states?: readonly BucketState[]
}

/** The group that counts an identity instead, by the override that was found: its own, or that of its range. */
export type Found = (group: BucketGroup, key: string, override: Buffer, isOwn: boolean) => BucketGroup

/** Whether an override has changed that the works relied on; then nothing was done. */
export const isStale = (reply: unknown): boolean => reply instanceof Buffer && reply.length === 5

/** Reads the script's reply, one answer per work: an error is about its own work alone. */
export function decode(
  batch: readonly Work[],
  reply: unknown,
  lookups: readonly Lookup[] = [],
  instead?: Found,
): (Answer | FluxGateError)[] {
  const [bytes, ...problems] = (Array.isArray(reply) ? [...reply] : [reply]) as Buffer[]
  const overridden = instead && Array.isArray(problems.at(-1)) ? appliedBy(problems.pop(), lookups, instead) : undefined
  const answers = new Answers(doublesOf(bytes as Buffer))
  return batch.map((work) => {
    const applied = lookups.length === 0 ? undefined : (overridden?.get(work) ?? believed(work))
    return answers.next(work, applied) ?? problemOf(problems.shift())
  })
}

const problemOf = (problem: Buffer | undefined): FluxGateError =>
  new FluxGateError('FLUXGATE_BUCKET_INVALID', `The bucket store could not decide: ${problem}.`)

class Answers {
  readonly #numbers: Float64Array
  readonly #now: number
  #place = 1

  constructor(numbers: Float64Array) {
    this.#numbers = numbers
    this.#now = numbers[0] as number
  }

  /** Undefined if the work could not be done. */
  next(work: Work, applied: readonly Demand[] | undefined): Answer | undefined {
    const now = this.#now
    const said = this.#numbers[this.#place++]
    if (said === unable) return undefined
    const isGranted = said === granted || said === allowed
    if (work.what === 'REFUND' || work.what === 'SETTLE' || work.what === 'RESET')
      return { granted: isGranted, now, bands: [] }
    const count = bandCount(applied ?? work.claims)
    const states = work.what === 'CHARGE' && !isGranted ? new Array<BucketState>(count) : undefined
    const bands = new Array<BandResult>(count)
    for (let band = count - 1; band >= 0; band--) {
      bands[band] = said === allowed ? this.#allowed() : this.#band()
      if (states !== undefined) states[band] = this.#state()
    }
    const answer: Answer =
      applied === undefined ? { granted: isGranted, now, bands } : { granted: isGranted, now, bands, applied }
    if (states !== undefined) return { ...answer, states }
    return work.what === 'LEASE' && isGranted ? { ...answer, lease: this.#lease() } : answer
  }

  #allowed(): BandResult {
    const place = this.#place
    this.#place += 2
    const numbers = this.#numbers
    return {
      allowed: true,
      delay: 0,
      retryAfter: 0,
      remaining: numbers[place] as number,
      resetAt: numbers[place + 1] as number,
    }
  }

  #band(): BandResult {
    const place = this.#place
    this.#place += 4
    const numbers = this.#numbers
    const retryAfter = numbers[place] as number
    return {
      allowed: retryAfter === 0,
      delay: numbers[place + 1] as number,
      retryAfter: retryAfter < 0 ? Number.POSITIVE_INFINITY : retryAfter,
      remaining: numbers[place + 2] as number,
      resetAt: numbers[place + 3] as number,
    }
  }

  #state(): BucketState {
    const place = this.#place
    this.#place += 5
    const size = this.#numbers[place] as number
    if (size < 0) return null
    return size === 0 ? undefined : [...this.#numbers.subarray(place + 1, place + 5)]
  }

  #lease(): { permits: number; ending: number } {
    const place = this.#place
    this.#place += 2
    return { permits: this.#numbers[place] as number, ending: this.#numbers[place + 1] as number }
  }
}

function believed({ what, claims }: Work): readonly Demand[] | undefined {
  const isBelieved = (what === 'CHARGE' || what === 'PEEK') && claims.some((claim: BelievedDemand) => claim.expected)
  return isBelieved ? claims : undefined
}

/** By work: its demands, with other groups where there is an override. `said` is numbers of lookups and overrides in turn. */
function appliedBy(said: unknown, lookups: readonly Lookup[], instead: Found): ReadonlyMap<Work, readonly Demand[]> {
  const applied = new Map<Work, Demand[]>()
  const items = said as readonly (number | Buffer)[]
  for (let i = 0; i < items.length; i += 2) {
    const { work, claim, otherwise } = lookups[items[i] as number] as Lookup
    const override = items[i + 1] as Buffer
    if (work.what !== 'CHARGE' && work.what !== 'PEEK') continue
    const demands = applied.get(work) ?? [...work.claims]
    const { group, key, ...asked } = work.claims[claim] as Demand
    demands[claim] = demandOf(
      { ...asked, group: instead(group, key, override, !override.equals(otherwise)) },
      key,
      asked.permits,
    )
    applied.set(work, demands)
  }
  return applied
}

/** A copy: bytes of a reply begin anywhere, doubles only at whole eights. */
function doublesOf(bytes: Buffer): Float64Array {
  const copy = new Float64Array(bytes.length / 8)
  const target = Buffer.from(copy.buffer)
  target.set(bytes)
  if (endianness() !== 'LE') target.swap64()
  return copy
}
