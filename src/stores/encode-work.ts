/**
 * What the script is asked, as numbers. The layout is described where it is read: in consume.lua.
 */
import { endianness } from 'node:os'
import { cellsOf, kindOf } from '../algorithms/index.js'
import type { BucketGroup, Demand, Refund, Settlement } from '../core/bucket-store.js'
import type { Band } from '../core/rule.js'
import type { BelievedDemand } from './override-beliefs.js'
import type { LastEdit, Lookup, Names, Work } from './redis-work.js'

const plain = 0
const run = 7
const codes: Readonly<Record<Work['what'], number>> = { CHARGE: 1, PEEK: 2, REFUND: 3, LEASE: 4, SETTLE: 5, RESET: 6 }

export interface Message {
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  readonly lookups: readonly Lookup[]
  /** Whether identities count otherwise than their rule says, by overrides that are known already. */
  readonly namesOverrides: boolean
}

/** `now` in ticks, or below 0 for the server's. `edit` is asked for if rules have overrides. */
export function encode(batch: readonly Work[], names: Names, now: number, edit: LastEdit): Message {
  const buckets = new NamedBuckets(batch, names)
  const { bands, lookups } = buckets
  const entries = new Entries(batch, buckets)
  const first = [now, buckets.cells, bands.size, entries.count]
  for (const band of bands.keys()) first.push(kindOf(band), band.capacity, band.refillTokens, band.windowTicks)
  const keys = buckets.keys(edit)
  const args: (string | Buffer)[] = [littleEndian(first, entries.numbers)]
  const { namesOverrides } = buckets
  if (buckets.mayOverride) args.push(edit.known)
  if (lookups.length > 0) {
    args.push(littleEndian([namesOverrides ? 1 : 0], buckets.looks()))
    for (const { work, claim } of lookups) args.push((work.claims[claim] as Work['claims'][number]).key)
    if (lookups.some(({ otherwise }) => otherwise.length > 0)) for (const { otherwise } of lookups) args.push(otherwise)
    keys.push(...buckets.hashes)
  }
  return { keys, args, lookups, namesOverrides }
}

/** The buckets of all works, each once: first those that are a few numbers, then logs. And what is to be looked up. */
class NamedBuckets {
  /** Per band of each work in turn: the number of its bucket, below 0 for a log, and of its band. */
  readonly claimed: number[] = []
  readonly bands = new Map<Band, number>()
  readonly lookups: Lookup[] = []
  readonly hashes: string[] = []
  /** Whether a rule has overrides. */
  mayOverride = false
  /** Whether a bucket of an override is named by itself. */
  namesOverrides = false
  /** Per lookup: the number of its work, the number of its first band there, and where the claim's bands begin in `claimed`. */
  readonly #places: number[] = []
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

  /** With the last edit, which is read with them. */
  get cells(): number {
    return this.#cells.size + (this.mayOverride ? 1 : 0)
  }

  keys(edit: LastEdit): string[] {
    return [...this.#cells.keys(), ...(this.mayOverride ? [edit.key] : []), ...this.#logs.keys()]
  }

  /** Logs are numbered after all the others. */
  keyAt(at: number): number {
    const place = this.claimed[at] as number
    return place < 0 ? this.cells - place : place
  }

  /** Per lookup: the number of its work, of its first band there, how many it has, the first band and the first bucket. */
  looks(): number[] {
    const places = this.#places
    return this.lookups.flatMap(({ work, claim }, i) => {
      const [index, before, at] = places.slice(3 * i, 3 * i + 3) as [number, number, number]
      const { length } = (work.claims[claim] as Work['claims'][number]).group.bands
      // The bands of a group are numbered together, one after the other.
      return length === 0
        ? [index, before, 0, 0, 0]
        : [index, before, length, this.claimed[at + 1] as number, this.keyAt(at)]
    })
  }

  /** What is held of a bucket is kept beside its numbers, so that it is not as simple to write. */
  isAlone({ what }: Work, index: number): boolean {
    return !this.#shares[index] && what !== 'LEASE' && what !== 'SETTLE'
  }

  #add(work: Work, index: number): void {
    let before = 0
    for (let claim = 0; claim < work.claims.length; claim++) {
      const { group, key, isBelieved } = work.claims[claim] as Partial<BelievedDemand> & Work['claims'][number]
      if (isBelieved) this.mayOverride = true
      else if (group.hasOverrides && isLookedUp(work, claim)) {
        this.mayOverride = true
        this.#places.push(index + 1, before + 1, this.claimed.length)
        const { hash, otherwise } = this.#names.overrideOf(group, key)
        this.lookups.push({ work, claim, otherwise })
        this.hashes.push(hash)
      }
      if (group.insteadOf !== undefined) this.namesOverrides = true
      for (let band = 0; band < group.bands.length; band++) this.#name(group, key, band, index)
      before += group.bands.length
    }
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

  #addBucket(): void {
    this.numbers.push(this.#buckets.keyAt(this.#at), this.#buckets.claimed[this.#at + 1] as number)
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
