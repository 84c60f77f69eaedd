/**
 * What the script is asked, as numbers. The layout is described where it is read: in consume.lua.
 */
import { endianness } from 'node:os'
import { cellsOf, kindOf } from '../algorithms/index.js'
import type { BucketGroup, Demand, Refund, Settlement } from '../core/bucket-store.js'
import type { Band } from '../core/rule.js'
import type { BelievedDemand } from './override-beliefs.js'
import type { Lookup, Names, Work } from './redis-work.js'

const plain = 0
const run = 7
const codes: Readonly<Record<Work['what'], number>> = { CHARGE: 1, PEEK: 2, REFUND: 3, LEASE: 4, SETTLE: 5, RESET: 6 }

export interface Message {
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  readonly lookups: readonly Lookup[]
}

/** `now` in ticks, or below 0 for the server's. */
export function encode(batch: readonly Work[], names: Names, now: number): Message {
  const buckets = new NamedBuckets(batch, names)
  const { bands, lookups } = buckets
  const entries = new Entries(batch, buckets)
  const first = [now, buckets.cells, bands.size, entries.count]
  for (const band of bands.keys()) first.push(kindOf(band), band.capacity, band.refillTokens, band.windowTicks)
  const keys = buckets.keys()
  const args: (string | Buffer)[] = [littleEndian(first, entries.numbers)]
  if (lookups.length > 0) {
    args.push(littleEndian([buckets.namesOverrides ? 1 : 0], buckets.looks), ...buckets.texts)
    keys.push(...buckets.hashes)
  }
  return { keys, args, lookups }
}

/** The buckets of all works, each once: first those that are a few numbers, then logs. And what is to be looked up. */
class NamedBuckets {
  /** Per band of each work in turn: the number of its bucket, below 0 for a log, and of its band. */
  readonly claimed: number[] = []
  readonly bands = new Map<Band, number>()
  readonly lookups: Lookup[] = []
  readonly hashes: string[] = []
  /** Per lookup: the number of its work, the number of its first band there, how many it has, and their first number. */
  readonly looks: number[] = []
  readonly texts: (string | Buffer)[] = []
  /** Whether a bucket of an override is named by itself. */
  namesOverrides = false
  readonly #names: Names
  readonly #cells = new Map<string, number>()
  readonly #logs = new Map<string, number>()
  /** By bucket, the first work that names it. */
  readonly #namedBy: number[] = []
  /** By work: whether another names one of its buckets too, or it is a log. */
  readonly #shares: boolean[]

  constructor(batch: readonly Work[], names: Names) {
    this.#names = names
    this.#shares = new Array<boolean>(batch.length).fill(false)
    for (let index = 0; index < batch.length; index++) this.#add(batch[index] as Work, index)
  }

  get cells(): number {
    return this.#cells.size
  }

  keys(): string[] {
    return [...this.#cells.keys(), ...this.#logs.keys()]
  }

  /** What is held of a bucket is kept beside its numbers, so that it is not as simple to write. */
  isAlone({ what }: Work, index: number): boolean {
    return !this.#shares[index] && what !== 'LEASE' && what !== 'SETTLE'
  }

  #add(work: Work, index: number): void {
    let before = 0
    for (let claim = 0; claim < work.claims.length; claim++) {
      const { group, key, expected } = work.claims[claim] as Partial<BelievedDemand> & Work['claims'][number]
      if (expected || (group.hasOverrides && isLookedUp(work, claim))) {
        // The bands of a group are numbered together, one after the other.
        const [first] = group.bands
        this.looks.push(index + 1, before + 1, group.bands.length, first ? placeIn(this.bands, first) : 0)
        this.#lookUp(work, claim, expected)
      }
      if (group.insteadOf !== undefined) this.namesOverrides = true
      for (let band = 0; band < group.bands.length; band++) this.#name(group, key, band, index)
      before += group.bands.length
    }
  }

  #lookUp(work: Work, claim: number, expected: Buffer = nothing): void {
    const { group, key } = work.claims[claim] as Work['claims'][number]
    const { hash, base, otherwise } = this.#names.overrideOf(group.insteadOf ?? group, key)
    this.lookups.push({ work, claim, otherwise })
    this.hashes.push(hash)
    this.texts.push(key, base, otherwise, expected)
  }

  #name(group: BucketGroup, key: string, index: number, work: number): void {
    const band = group.bands[index] as Band
    const name = this.#names.keyOf(group, key, index)
    if (cellsOf(band) === undefined) {
      this.#shares[work] = true
      this.claimed.push(-placeIn(this.#logs, name), placeIn(this.bands, band))
      return
    }
    const seen = this.#cells.size
    const place = placeIn(this.#cells, name)
    if (this.#cells.size > seen) this.#namedBy[place] = work
    else {
      this.#shares[work] = true
      this.#shares[this.#namedBy[place] as number] = true
    }
    this.claimed.push(place, placeIn(this.bands, band))
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

/** What is asked of the buckets, in the order of the works. */
class Entries {
  readonly numbers: number[] = []
  count = 0
  readonly #buckets: NamedBuckets
  /** How far `claimed` of the buckets is written. */
  #at = 0
  /** Of the run that the last work was in: what it asked, and where it says how many do. */
  #run: readonly Demand[] | undefined
  #runAt = 0

  constructor(batch: readonly Work[], buckets: NamedBuckets) {
    this.#buckets = buckets
    for (let index = 0; index < batch.length; index++) this.#add(batch[index] as Work, index)
  }

  #add(work: Work, index: number): void {
    const isAlone = this.#buckets.isAlone(work, index)
    const isPlain = work.what === 'CHARGE' && work.claims.every(({ shadow }) => !shadow)
    if (isPlain && isAlone) {
      this.#addToRun(work.claims as readonly Demand[])
      return
    }
    this.#run = undefined
    this.count += 1
    if (isPlain) this.#addPlain(work.claims as readonly Demand[])
    else this.#addOther(work, isAlone)
  }

  /** The buckets of a run are all new, so that they follow each other. */
  #addToRun(claims: readonly Demand[]): void {
    const { numbers } = this
    const { claimed } = this.#buckets
    if (this.#run !== undefined && asksTheSame(this.#run, claims)) {
      numbers[this.#runAt] = (numbers[this.#runAt] as number) + 1
      this.#at += 2 * (numbers[this.#runAt + 1] as number)
      return
    }
    this.count += 1
    this.#run = claims
    this.#runAt = numbers.length + 1
    numbers.push(run, 1, 0, claimed[this.#at] ?? 1)
    for (const { group, permits, patience } of claims) {
      numbers[this.#runAt + 1] = (numbers[this.#runAt + 1] as number) + group.bands.length
      for (let band = 0; band < group.bands.length; band++, this.#at += 2)
        numbers.push(permits, patience, claimed[this.#at + 1] as number)
    }
  }

  #addPlain(claims: readonly Demand[]): void {
    const head = this.numbers.length
    this.numbers.push(plain, 0)
    for (const { group, permits, patience } of claims) {
      this.numbers[head + 1] = (this.numbers[head + 1] as number) + group.bands.length
      for (let band = 0; band < group.bands.length; band++) {
        this.numbers.push(permits, patience)
        this.#addBucket()
      }
    }
  }

  #addOther(work: Work, isAlone: boolean): void {
    this.numbers.push(codes[work.what], isAlone ? 1 : 0, work.claims.length)
    for (let claim = 0; claim < work.claims.length; claim++) {
      const { bands } = (work.claims[claim] as Work['claims'][number]).group
      this.numbers.push(...termsOf(work, claim), bands.length)
      for (let band = 0; band < bands.length; band++) {
        this.#addBucket()
        this.numbers.push(instantOf(work, claim, band))
      }
    }
  }

  /** Logs are numbered after all the others. */
  #addBucket(): void {
    const { claimed, cells } = this.#buckets
    const place = claimed[this.#at] as number
    this.numbers.push(place < 0 ? cells - place : place, claimed[this.#at + 1] as number)
    this.#at += 2
  }
}

function asksTheSame(one: readonly Demand[], other: readonly Demand[]): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) {
    const { group, permits, patience } = one[i] as Demand
    const { group: otherGroup, permits: otherPermits, patience: otherPatience } = other[i] as Demand
    if (group !== otherGroup || permits !== otherPermits || patience !== otherPatience) return false
  }
  return true
}

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

function littleEndian(first: readonly number[], second: readonly number[]): Buffer {
  const doubles = new Float64Array(first.length + second.length)
  doubles.set(first)
  doubles.set(second, first.length)
  const bytes = Buffer.from(doubles.buffer)
  return endianness() === 'LE' ? bytes : bytes.swap64()
}
