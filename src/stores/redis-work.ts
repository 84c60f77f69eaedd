/**
 * What the script is asked, and what it answers, as numbers. The layout is described where it is read: in consume.lua.
 */
import { endianness } from 'node:os'
import { cellsOf, kindOf } from '../algorithms/index.js'
import {
  type BandResult,
  type BucketGroup,
  bandCount,
  type Demand,
  demandOf,
  type LeaseRequest,
  type LeaseResult,
  type Refund,
  type Settlement,
} from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import type { Band } from '../core/rule.js'
import type { BelievedDemand } from './override-beliefs.js'

export type Work =
  | { readonly what: 'CHARGE' | 'PEEK'; readonly claims: readonly Demand[] }
  | { readonly what: 'REFUND'; readonly claims: readonly Refund[] }
  | { readonly what: 'LEASE'; readonly claims: readonly [LeaseRequest] }
  | { readonly what: 'SETTLE'; readonly claims: readonly Settlement[] }
  | { readonly what: 'RESET'; readonly claims: readonly Pick<Refund, 'group' | 'key'>[] }

const plain = 0
const codes: Readonly<Record<Work['what'], number>> = { CHARGE: 1, PEEK: 2, REFUND: 3, LEASE: 4, SETTLE: 5, RESET: 6 }

/** What one claim asks of its bands, in the order in which the script reads it. */
type Terms = readonly [permits: number, patience: number, third: number]

function termsOf(work: Work, index: number): Terms {
  switch (work.what) {
    case 'CHARGE':
    case 'PEEK': {
      const { permits, patience, shadow } = work.claims[index] as Demand
      return [permits, patience, shadow ? 1 : 0]
    }
    case 'LEASE':
      return [work.claims[0].permits, 0, work.claims[0].wanted]
    case 'RESET':
      return [0, 0, 0]
    default:
      return [(work.claims[index] as Refund | Settlement).permits, 0, 0]
  }
}

const unset = -1

function instantOf(work: Work, index: number, band: number): number {
  if (work.what === 'REFUND') return work.claims[index]?.grantedAt?.[band] ?? unset
  return work.what === 'SETTLE' ? (work.claims[index] as Settlement).ending : unset
}

/** Where the buckets of a group are, and whether they are logs. */
export interface Names {
  keyOf(group: BucketGroup, key: string, band: number): string
  /** Where to look for the override of an identity. */
  overrideOf(group: BucketGroup, key: string): OverridePlace
}

export interface OverridePlace {
  /** The hash that would hold it. */
  readonly hash: string
  /** How the names of its buckets begin. */
  readonly base: string
  /** Of a range of addresses that holds the identity; applies if it has none of its own. */
  readonly otherwise: Buffer
}

/** The claim of a work that may have an override. */
interface Lookup {
  readonly work: Work
  readonly claim: number
  readonly otherwise: Buffer
}

export interface Message {
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  readonly lookups: readonly Lookup[]
}

/** `now` in ticks, or below 0 for the server's. */
export function encode(batch: readonly Work[], names: Names, now: number): Message {
  const encoder = new Encoder(names)
  for (const work of batch) encoder.add(work)
  return encoder.finish(now, batch.length)
}

class Encoder {
  readonly #names: Names
  readonly #cells = new Map<string, number>()
  readonly #logs = new Map<string, number>()
  readonly #bands = new Map<Band, number>()
  readonly #numbers: number[] = []
  /** Where a log is named: logs are numbered after all the others. */
  readonly #logPlaces: number[] = []
  /** By key, where the decision that names it says that no other does. */
  readonly #claimedAt: number[] = []
  readonly #hashes: string[] = []
  readonly #lookups: Lookup[] = []
  /** Per lookup: where its first band stands, how many it has, how many numbers each is, where its decision stands. */
  readonly #looks: number[] = []
  /** Whether a bucket of an override is named by itself. */
  #namesOverrides = 0
  readonly #texts: (string | Buffer)[] = []

  constructor(names: Names) {
    this.#names = names
  }

  add(work: Work): void {
    const { what, claims } = work
    const numbers = this.#numbers
    const at = numbers.length + 1
    if (what === 'CHARGE' && claims.every(({ shadow }) => !shadow)) {
      numbers.push(plain, 1, bandCount(claims))
      for (let claim = 0; claim < claims.length; claim++) {
        const { group, key, permits, patience, expected } = claims[claim] as BelievedDemand
        if (group.hasOverrides || expected) this.#lookUp(work, claim, 4, at)
        for (let band = 0; band < group.bands.length; band++) {
          numbers.push(permits, patience)
          this.#addBucket(group, key, band, at)
        }
      }
      return
    }
    // What is held of a bucket is kept beside its numbers, so that it is not as simple to write.
    numbers.push(codes[what], what === 'LEASE' || what === 'SETTLE' ? 0 : 1, claims.length)
    for (let claim = 0; claim < claims.length; claim++) {
      const { group, key, expected } = claims[claim] as Partial<BelievedDemand> & Work['claims'][number]
      numbers.push(...termsOf(work, claim), group.bands.length)
      if (expected || (group.hasOverrides && isLookedUp(work, claim)))
        this.#lookUp(work, claim, what === 'RESET' ? 0 : 3, at)
      for (let band = 0; band < group.bands.length; band++) {
        this.#addBucket(group, key, band, at)
        numbers.push(instantOf(work, claim, band))
      }
    }
  }

  finish(now: number, decisions: number): Message {
    const numbers = this.#numbers
    for (const place of this.#logPlaces) numbers[place] = (numbers[place] as number) + this.#cells.size
    const first = [now, this.#cells.size, this.#bands.size, decisions]
    for (const band of this.#bands.keys()) first.push(kindOf(band), band.capacity, band.refillTokens, band.windowTicks)
    const keys = [...this.#cells.keys(), ...this.#logs.keys()]
    const args: (string | Buffer)[] = [littleEndian(first, numbers)]
    if (this.#lookups.length > 0) {
      for (let i = 0; i < this.#looks.length; i += 4) {
        this.#looks[i] = (this.#looks[i] as number) + first.length
        this.#looks[i + 3] = (this.#looks[i + 3] as number) + first.length
      }
      args.push(littleEndian([this.#namesOverrides], this.#looks), ...this.#texts)
      keys.push(...this.#hashes)
    }
    return { keys, args, lookups: this.#lookups }
  }

  /** Before the first band of the claim is named; `at` is where its decision says whether it is alone. */
  #lookUp(work: Work, claim: number, size: number, at: number): void {
    const { group, key, expected = nothing } = work.claims[claim] as Partial<BelievedDemand> & Work['claims'][number]
    const { hash, base, otherwise } = this.#names.overrideOf(group.insteadOf ?? group, key)
    this.#lookups.push({ work, claim, otherwise })
    this.#hashes.push(hash)
    this.#looks.push(this.#numbers.length + 1, group.bands.length, size, at)
    this.#texts.push(key, base, otherwise, expected)
  }

  /** Names the key and the band, for the decision that says at `at` whether it is alone with its keys. */
  #addBucket(group: BucketGroup, key: string, index: number, at: number): void {
    const numbers = this.#numbers
    const band = group.bands[index] as Band
    if (group.insteadOf !== undefined) this.#namesOverrides = 1
    const isLog = cellsOf(band) === undefined
    if (isLog) this.#logPlaces.push(numbers.length)
    const keys = isLog ? this.#logs : this.#cells
    const seen = keys.size
    const place = placeIn(keys, this.#names.keyOf(group, key, index))
    numbers.push(place, placeIn(this.#bands, band))
    if (isLog) numbers[at] = 0
    else if (keys.size > seen) this.#claimedAt[place] = at
    else {
      numbers[at] = 0
      numbers[this.#claimedAt[place] as number] = 0
    }
  }
}

const nothing = Buffer.alloc(0)

/** What a refund gives back to a certain instant was taken from known buckets. */
const isLookedUp = ({ what, claims }: Work, claim: number): boolean =>
  what !== 'REFUND' || claims[claim]?.grantedAt === undefined

/** The place of an item among those seen so far, from 1. */
function placeIn<T>(places: Map<T, number>, item: T): number {
  const place = places.get(item)
  if (place !== undefined) return place
  places.set(item, places.size + 1)
  return places.size
}

function littleEndian(first: readonly number[], second: readonly number[]): Buffer {
  const doubles = new Float64Array(first.length + second.length)
  doubles.set(first)
  doubles.set(second, first.length)
  const bytes = Buffer.from(doubles.buffer)
  return endianness() === 'LE' ? bytes : bytes.swap64()
}

/**
 * The numbers of a bucket, as it was when it refused; of a log, the tick until which it stays the same. Undefined if nobody
 * has used it, null if it is not told.
 */
export type BucketState = readonly number[] | undefined | null

export interface Answer extends LeaseResult {
  /** Per band, if the work was a charge that was refused. */
  readonly states?: readonly BucketState[]
}

const unable = 2

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
  const numbers = doublesOf(bytes as Buffer)
  const now = numbers[0] as number
  let place = 1
  const answers = new Array<Answer | FluxGateError>(batch.length)
  for (let i = 0; i < batch.length; i++) {
    const work = batch[i] as Work
    const said = numbers[place++]
    if (said === unable) {
      const problem = String(problems.shift())
      answers[i] = new FluxGateError('FLUXGATE_BUCKET_INVALID', `The bucket store could not decide: ${problem}.`)
      continue
    }
    const granted = said === 1
    if (work.what === 'REFUND' || work.what === 'SETTLE' || work.what === 'RESET') {
      answers[i] = { granted, now, bands: [] }
      continue
    }
    const applied = lookups.length === 0 ? undefined : (overridden?.get(work) ?? believed(work))
    const bands = new Array<BandResult>(bandCount(applied ?? work.claims))
    for (let band = 0; band < bands.length; band++, place += 4) bands[band] = bandResult(numbers, place)
    if (work.what === 'LEASE' && granted) {
      const lease = { permits: numbers[place] as number, ending: numbers[place + 1] as number }
      place += 2
      answers[i] = { granted, now, bands, lease }
    } else if (work.what === 'CHARGE' && !granted) {
      const states = new Array<BucketState>(bands.length)
      for (let band = bands.length - 1; band >= 0; band--, place += 5) states[band] = bucketState(numbers, place)
      answers[i] = { granted, now, bands, states, ...(applied !== undefined && { applied }) }
    } else answers[i] = applied === undefined ? { granted, now, bands } : { granted, now, bands, applied }
  }
  return answers
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

function bandResult(numbers: Float64Array, place: number): BandResult {
  const retryAfter = numbers[place] as number
  return {
    allowed: retryAfter === 0,
    delay: numbers[place + 1] as number,
    retryAfter: retryAfter < 0 ? Number.POSITIVE_INFINITY : retryAfter,
    remaining: numbers[place + 2] as number,
    resetAt: numbers[place + 3] as number,
  }
}

function bucketState(numbers: Float64Array, place: number): BucketState {
  const size = numbers[place] as number
  if (size < 0) return null
  return size === 0 ? undefined : [...numbers.subarray(place + 1, place + 5)]
}

/** A copy: bytes of a reply begin anywhere, doubles only at whole eights. */
function doublesOf(bytes: Buffer): Float64Array {
  const copy = new Float64Array(bytes.length / 8)
  const target = Buffer.from(copy.buffer)
  target.set(bytes)
  if (endianness() !== 'LE') target.swap64()
  return copy
}
