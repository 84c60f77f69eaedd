/** Decodes the reply of the script. consume.lua describes the layout. */
import { endianness } from 'node:os'
import {
  type BandResult,
  type BucketGroup,
  bandCount,
  type Charge,
  chargeOf,
  type LeaseResult,
} from '../../core/bucket-store.js'
import { FluxGateError } from '../../core/errors.js'
import { bytesReply, malformedReply, unexpectedReply } from '../../redis/client/replies.js'
import type { Message } from './encode.js'
import type { Lookup, Work } from './work.js'

const [refused, granted, unable, allowed] = [0, 1, 2, 3]

/**
 * The numbers of a bucket that rejected; for a log, the tick until which it stays unchanged and its timestamp. If the store's
 * clock has stepped back, a fifth number is the timestamp before the step. Undefined for an unused bucket, null if unknown.
 */
export type BucketState = readonly number[] | undefined | null

export interface Answer extends LeaseResult {
  /** The state of each band, if a charge or peek was rejected. */
  readonly states?: readonly BucketState[]
}

/** Returns the group of a key for the override that was found: of the key, of its range, or none. */
export type Found = (lookup: Lookup, override: Buffer | undefined, now: number) => BucketGroup

/** Returns the new edit if overrides were edited since the known edit. The script has then executed nothing. */
export function newEdit(reply: unknown): string | undefined {
  if (!Array.isArray(reply)) return undefined
  const [first, edit] = reply
  // Results are at least one number of eight bytes.
  return Buffer.isBuffer(first) && first.length === stale.length && first.equals(stale)
    ? bytesReply(edit).toString()
    : undefined
}
const stale = Buffer.from('STALE')

/**
 * Returns the result of each work; an error concerns only its own work. Throws `FLUXGATE_STORE_FAILED` if the reply does not
 * have exactly the layout for these works.
 */
export function decode(
  batch: readonly Work[],
  reply: unknown,
  { lookups, namesOverrides }: Pick<Message, 'lookups' | 'namesOverrides'> = { lookups: [], namesOverrides: false },
  found?: Found,
): (Answer | FluxGateError)[] {
  const [bytes, ...problems] = Array.isArray(reply) ? reply : [reply]
  const numbers = doublesOf(bytes)
  const said: readonly unknown[] = Array.isArray(problems.at(-1)) ? problems.pop() : []
  const overridden = found && lookups.length > 0 ? appliedBy(said, lookups, numbers[0] as number, found) : undefined
  if (overridden === undefined && said.length > 0) throw unexpectedReply('results without overrides', reply)
  const answers = new Answers(numbers)
  let problem = 0
  const decoded = batch.map((work) => {
    const applied = overridden?.get(work) ?? (namesOverrides ? believed(work) : undefined)
    return answers.next(work, applied) ?? problemOf(problems[problem++])
  })
  if (!answers.isAtEnd || problem !== problems.length)
    throw unexpectedReply(`results of ${batch.length} decisions`, bytes)
  return decoded
}

const problemOf = (problem: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_BUCKET_INVALID', `The bucket store could not decide: ${bytesReply(problem)}.`)

/** The works whose results have no bands. */
const withoutBands: ReadonlySet<Work['what']> = new Set(['REFUND', 'SETTLE', 'RESET', 'BACKDATE'])

class Answers {
  readonly #numbers: Float64Array
  readonly #now: number
  #place = 1

  constructor(numbers: Float64Array) {
    this.#numbers = numbers
    this.#now = numbers[0] as number
    if (!isInstant(this.#now)) throw malformedReply('time')
  }

  /** False if the reply has too many or too few numbers, because reading past the end advances too. */
  get isAtEnd(): boolean {
    return this.#place === this.#numbers.length
  }

  /** Returns undefined if the work failed. */
  next(work: Work, applied: readonly Charge[] | undefined): Answer | undefined {
    const now = this.#now
    const said = this.#numbers[this.#place++]
    if (said === unable) return undefined
    const isGranted = said === granted || said === allowed
    if (!isGranted && said !== refused) throw malformedReply('outcome')
    if (withoutBands.has(work.what)) return { granted: isGranted, now, bands: [] }
    const count = bandCount(applied ?? work.claims)
    const states = work.what !== 'LEASE' && !isGranted ? new Array<BucketState>(count) : undefined
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
    const remaining = this.#numbers[place] as number
    const resetAt = this.#numbers[place + 1] as number
    if (!isCount(remaining) || !isInstant(resetAt)) throw malformedReply('band')
    return { allowed: true, delay: 0, retryAfter: 0, remaining, resetAt }
  }

  #band(): BandResult {
    const place = this.#place
    this.#place += 4
    const numbers = this.#numbers
    const retryAfter = numbers[place] as number
    const delay = numbers[place + 1] as number
    const remaining = numbers[place + 2] as number
    const resetAt = numbers[place + 3] as number
    const isSound = (isCount(retryAfter) || retryAfter === never) && delay >= 0 && delay < mostTicks
    if (!isSound || !isCount(remaining) || !isInstant(resetAt)) throw malformedReply('band')
    return {
      allowed: retryAfter === 0,
      delay,
      retryAfter: retryAfter === never ? Number.POSITIVE_INFINITY : retryAfter,
      remaining,
      resetAt,
    }
  }

  #state(): BucketState {
    const place = this.#place
    this.#place += 5
    const size = this.#numbers[place] as number
    if (size === untold) return null
    if (size === 0) return undefined
    const state = [...this.#numbers.subarray(place + 1, place + 5)]
    if (size > state.length) state.push(size)
    else if (size !== state.length) throw malformedReply('state')
    if (!isInstant(size) || state.some(Number.isNaN)) throw malformedReply('state')
    return state
  }

  #lease(): { permits: number; ending: number } {
    const place = this.#place
    this.#place += 2
    const permits = this.#numbers[place] as number
    const ending = this.#numbers[place + 1] as number
    if (!isCount(permits) || !isInstant(ending)) throw malformedReply('lease')
    return { permits, ending }
  }
}

const never = -1
const untold = -1
const mostTicks = 2 ** 53
/** Also false for missing numbers. */
const isCount = (value: number): boolean => value >= 0 && Number.isSafeInteger(value)
const isInstant = isCount

function believed({ what, claims }: Work): readonly Charge[] | undefined {
  const isBelieved = (what === 'CHARGE' || what === 'PEEK') && claims.some(({ group }) => group.insteadOf !== undefined)
  return isBelieved ? claims : undefined
}

/** By work: its demands, with other groups where there is an override. `said` is numbers of lookups and overrides in turn. */
function appliedBy(
  said: readonly unknown[],
  lookups: readonly Lookup[],
  now: number,
  found: Found,
): ReadonlyMap<Work, readonly Charge[]> {
  const applied = new Map<Work, Charge[]>()
  let next = 0
  for (const [i, lookup] of lookups.entries()) {
    const { work, claim } = lookup
    const override = said[next] === i ? bytesReply(said[next + 1]) : undefined
    if (override !== undefined) next += 2
    if (work.what !== 'CHARGE' && work.what !== 'PEEK') continue
    const demand = work.claims[claim] as Charge
    const group = found(lookup, override, now)
    if (group === demand.group) continue
    const demands = applied.get(work) ?? [...work.claims]
    demands[claim] = chargeOf({ ...demand, group }, demand.key, demand.permits)
    applied.set(work, demands)
  }
  if (next !== said.length) throw unexpectedReply(`overrides of ${lookups.length} lookups`, said)
  return applied
}

/** Copies the bytes, because doubles must be aligned to eight bytes and replies are not. */
function doublesOf(reply: unknown): Float64Array {
  const bytes = bytesReply(reply)
  if (bytes.length === 0 || bytes.length % 8 !== 0) throw unexpectedReply('whole numbers of eight bytes', bytes)
  const copy = new Float64Array(bytes.length / 8)
  const target = Buffer.from(copy.buffer)
  target.set(bytes)
  if (endianness() !== 'LE') target.swap64()
  return copy
}
