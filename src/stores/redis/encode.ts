/** Encodes the input of the script. consume.lua describes the layout. */
import { endianness } from 'node:os'
import { kindOf } from '../../algorithms/index.js'
import type { Charge, Refund, Settlement } from '../../core/bucket-store.js'
import { NamedBuckets } from './named-buckets.js'
import type { Backdate, LastEdit, Lookup, Names, Work } from './work.js'

const plain = 0
const run = 7
const codes: Readonly<Record<Work['what'], number>> = {
  CHARGE: 1,
  PEEK: 2,
  REFUND: 3,
  LEASE: 4,
  SETTLE: 5,
  RESET: 6,
  BACKDATE: 8,
}

export interface Message {
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  readonly lookups: readonly Lookup[]
  /** True if a claim uses the group of an override that is already known. */
  readonly namesOverrides: boolean
}

/** `now` is in ticks, or negative for the server's clock. `edit` is sent only if a rule has overrides. */
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

/** The entries of the message, in the order of the works. */
class Entries {
  readonly numbers: number[] = []
  count = 0
  readonly #buckets: NamedBuckets
  /** The next index in `claimed` of the buckets. */
  #at = 0
  /** The charges of the current run, and the index of its number of decisions. */
  #run: readonly Charge[] | undefined
  #runAt = 0

  constructor(batch: readonly Work[], buckets: NamedBuckets) {
    this.#buckets = buckets
    for (let index = 0; index < batch.length; index++) this.#add(batch[index] as Work, index)
  }

  #add(work: Work, index: number): void {
    const isAlone = this.#buckets.isAlone(work, index)
    const isPlain = work.what === 'CHARGE' && work.claims.every(({ shadow }) => !shadow)
    if (isPlain && isAlone) {
      this.#addToRun(work.claims as readonly Charge[])
      return
    }
    this.#run = undefined
    this.count += 1
    if (isPlain) this.#addPlain(work.claims as readonly Charge[])
    else this.#addOther(work, isAlone)
  }

  /** All buckets of a run are new, so their numbers are consecutive. */
  #addToRun(claims: readonly Charge[]): void {
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
    for (const { group, permits, maxWaitTicks } of claims) {
      numbers[this.#runAt + 1] = (numbers[this.#runAt + 1] as number) + group.bands.length
      for (let band = 0; band < group.bands.length; band++, this.#at += 2)
        numbers.push(permits, maxWaitTicks, claimed[this.#at + 1] as number)
    }
  }

  #addPlain(claims: readonly Charge[]): void {
    const head = this.numbers.length
    this.numbers.push(plain, 0)
    for (const { group, permits, maxWaitTicks } of claims) {
      this.numbers[head + 1] = (this.numbers[head + 1] as number) + group.bands.length
      for (let band = 0; band < group.bands.length; band++) {
        this.numbers.push(permits, maxWaitTicks)
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

function asksTheSame(one: readonly Charge[], other: readonly Charge[]): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) {
    const { group, permits, maxWaitTicks } = one[i] as Charge
    const { group: otherGroup, permits: otherPermits, maxWaitTicks: otherPatience } = other[i] as Charge
    if (group !== otherGroup || permits !== otherPermits || maxWaitTicks !== otherPatience) return false
  }
  return true
}

/** The numbers of a claim, in the order in which the script reads them. */
type Terms = readonly [permits: number, maxWaitTicks: number, third: number]

function termsOf(work: Work, index: number): Terms {
  switch (work.what) {
    case 'CHARGE':
    case 'PEEK': {
      const { permits, maxWaitTicks, shadow } = work.claims[index] as Charge
      return [permits, maxWaitTicks, shadow ? 1 : 0]
    }
    case 'LEASE':
      return [work.claims[0].permits, 0, work.claims[0].wanted]
    case 'RESET':
      return [0, 0, 0]
    case 'BACKDATE':
      return [(work.claims[index] as Backdate).from, 0, 0]
    default:
      return [(work.claims[index] as Refund | Settlement).permits, 0, 0]
  }
}

const unset = -1

function instantOf(work: Work, index: number, band: number): number {
  if (work.what === 'BACKDATE') return work.claims[index]?.instants[band] ?? unset
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
