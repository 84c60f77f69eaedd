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
  type LeaseRequest,
  type LeaseResult,
  type Refund,
  type Settlement,
} from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import type { Band } from '../core/rule.js'

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
}

export interface Message {
  readonly keys: readonly string[]
  readonly numbers: Buffer
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

  constructor(names: Names) {
    this.#names = names
  }

  add(work: Work): void {
    const { what, claims } = work
    const numbers = this.#numbers
    const at = numbers.length + 1
    if (what === 'CHARGE' && claims.every(({ shadow }) => !shadow)) {
      numbers.push(plain, 1, bandCount(claims))
      for (const { group, key, permits, patience } of claims)
        for (let band = 0; band < group.bands.length; band++) {
          numbers.push(permits, patience)
          this.#addBucket(group, key, band, at)
        }
      return
    }
    // What is held of a bucket is kept beside its numbers, so that it is not as simple to write.
    numbers.push(codes[what], what === 'LEASE' || what === 'SETTLE' ? 0 : 1, claims.length)
    for (let claim = 0; claim < claims.length; claim++) {
      const { group, key } = claims[claim] as Work['claims'][number]
      numbers.push(...termsOf(work, claim), group.bands.length)
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
    return { keys: [...this.#cells.keys(), ...this.#logs.keys()], numbers: littleEndian(first, numbers) }
  }

  /** Names the key and the band, for the decision that says at `at` whether it is alone with its keys. */
  #addBucket(group: BucketGroup, key: string, index: number, at: number): void {
    const numbers = this.#numbers
    const band = group.bands[index] as Band
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

/** Reads the script's reply, one answer per work: an error is about its own work alone. */
export function decode(batch: readonly Work[], reply: unknown): (Answer | FluxGateError)[] {
  const [bytes, ...problems] = (Array.isArray(reply) ? reply : [reply]) as Buffer[]
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
    const bands = new Array<BandResult>(bandCount(work.claims))
    for (let band = 0; band < bands.length; band++, place += 4) bands[band] = bandResult(numbers, place)
    if (work.what === 'LEASE' && granted) {
      const lease = { permits: numbers[place] as number, ending: numbers[place + 1] as number }
      place += 2
      answers[i] = { granted, now, bands, lease }
    } else if (work.what === 'CHARGE' && !granted) {
      const states = new Array<BucketState>(bands.length)
      for (let band = bands.length - 1; band >= 0; band--, place += 5) states[band] = bucketState(numbers, place)
      answers[i] = { granted, now, bands, states }
    } else answers[i] = { granted, now, bands }
  }
  return answers
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
