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
import type { Message } from './encode-work.js'
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

/** The group that counts an identity, by the override that was found, its own or that of its range; or by none. */
export type Found = (lookup: Lookup, override: Buffer | undefined, now: number) => BucketGroup

/** If an override has been edited since the last edit that was known: the one of now; and nothing was done. */
export const newEdit = (reply: unknown): string | undefined =>
  Array.isArray(reply) && (reply[0] as Buffer).length === staleLength ? String(reply[1]) : undefined
const staleLength = 'STALE'.length

/** Reads the script's reply to a message, one answer per work: an error is about its own work alone. */
export function decode(
  batch: readonly Work[],
  reply: unknown,
  { lookups, namesOverrides }: Pick<Message, 'lookups' | 'namesOverrides'> = { lookups: [], namesOverrides: false },
  found?: Found,
): (Answer | FluxGateError)[] {
  const [bytes, ...problems] = (Array.isArray(reply) ? [...reply] : [reply]) as Buffer[]
  const numbers = doublesOf(bytes as Buffer)
  const said = Array.isArray(problems.at(-1)) ? (problems.pop() as unknown as (number | Buffer)[]) : []
  const overridden = found && lookups.length > 0 ? appliedBy(said, lookups, numbers[0] as number, found) : undefined
  const answers = new Answers(numbers)
  return batch.map((work) => {
    const applied = overridden?.get(work) ?? (namesOverrides ? believed(work) : undefined)
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
  const isBelieved = (what === 'CHARGE' || what === 'PEEK') && claims.some(({ group }) => group.insteadOf !== undefined)
  return isBelieved ? claims : undefined
}

/** By work: its demands, with other groups where there is an override. `said` is numbers of lookups and overrides in turn. */
function appliedBy(
  said: readonly (number | Buffer)[],
  lookups: readonly Lookup[],
  now: number,
  found: Found,
): ReadonlyMap<Work, readonly Demand[]> {
  const applied = new Map<Work, Demand[]>()
  let next = 0
  for (const [i, lookup] of lookups.entries()) {
    const { work, claim } = lookup
    const override = said[next] === i ? (said[next + 1] as Buffer) : undefined
    if (override !== undefined) next += 2
    if (work.what !== 'CHARGE' && work.what !== 'PEEK') continue
    const demand = work.claims[claim] as Demand
    const group = found(lookup, override, now)
    if (group === demand.group) continue
    const demands = applied.get(work) ?? [...work.claims]
    demands[claim] = demandOf({ ...demand, group }, demand.key, demand.permits)
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
