/** Encodes the input of the script. consume.lua describes the layout. */
import { endianness } from 'node:os'
import type { Charge, Refund, Settlement } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import { type BandLayout, bucketPrefix } from './bucket-keys.js'
import type { CachedCharge } from './overrides/override-cache.js'
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
  const buckets = numberBuckets(batch, names)
  const { cells, logs, lookups, namesOverrides } = buckets
  const keys = [...cells.keys()]
  // The script reads the last edit together with the cells.
  if (buckets.mayOverride) keys.push(edit.key)
  const entries: Entries = { numbers: [], count: 0, cellKeys: keys.length, at: 0, run: undefined, runAt: 0 }
  for (let index = 0; index < batch.length; index++) addEntry(entries, buckets, batch[index] as Work, index)
  keys.push(...logs.keys())
  const first = [now, entries.cellKeys, buckets.bands.size, entries.count, ...buckets.terms]
  const args: (string | Buffer)[] = [littleEndian(first, entries.numbers)]
  if (buckets.mayOverride) args.push(edit.known)
  if (lookups.length > 0) {
    args.push(littleEndian([namesOverrides ? 1 : 0], lookupNumbers(buckets, entries.cellKeys)))
    for (const { work, claim } of lookups) args.push((work.claims[claim] as Work['claims'][number]).key)
    if (lookups.some(({ otherwise }) => otherwise.length > 0)) for (const { otherwise } of lookups) args.push(otherwise)
    keys.push(...buckets.hashes)
  }
  return { keys, args, lookups, namesOverrides }
}

/** The distinct buckets and bands of a batch, numbered from 1 in order of first use, and the overrides to look up. */
interface Buckets {
  readonly cells: Map<string, number>
  readonly logs: Map<string, number>
  readonly bands: Map<Band, number>
  /** Four numbers per distinct band. */
  readonly terms: number[]
  /** For each band of each work: the number of its bucket, negative for a log, and the number of its band. */
  readonly claimed: number[]
  /** For each work: true if it shares a bucket with another work or uses a log. */
  readonly shares: boolean[]
  readonly lookups: Lookup[]
  readonly hashes: string[]
  /** Per lookup: the number of its work, the number of its first band there, and where the claim's bands begin in `claimed`. */
  readonly places: number[]
  /** True if a rule has overrides. */
  mayOverride: boolean
  /** True if a claim uses the bucket of an override directly. */
  namesOverrides: boolean
}

function numberBuckets(batch: readonly Work[], names: Names): Buckets {
  const buckets: Buckets = {
    cells: new Map(),
    logs: new Map(),
    bands: new Map(),
    terms: [],
    claimed: [],
    shares: new Array<boolean>(batch.length).fill(false),
    lookups: [],
    hashes: [],
    places: [],
    mayOverride: false,
    namesOverrides: false,
  }
  /** The first work that uses each cell. */
  const firstUses: number[] = []
  for (let index = 0; index < batch.length; index++) {
    const work = batch[index] as Work
    const start = buckets.claimed.length
    for (let claim = 0; claim < work.claims.length; claim++) {
      const { group, key, isCached } = work.claims[claim] as Partial<CachedCharge> & Work['claims'][number]
      if (isCached) buckets.mayOverride = true
      else if (group.hasOverrides && isLookedUp(work, claim)) {
        buckets.mayOverride = true
        buckets.places.push(index + 1, (buckets.claimed.length - start) / 2 + 1, buckets.claimed.length)
        const { hash, otherwise } = names.overrideOf(group, key)
        buckets.lookups.push({ work, claim, otherwise })
        buckets.hashes.push(hash)
      }
      if (group.insteadOf !== undefined) buckets.namesOverrides = true
      const prefix = bucketPrefix(names.prefix, key)
      for (const layout of names.layoutOf(group)) addBucket(buckets, firstUses, prefix, layout, index)
    }
  }
  return buckets
}

function addBucket(
  { cells, logs, bands, terms, claimed, shares }: Buckets,
  firstUses: number[],
  prefix: string,
  { band, kind, isLog, suffix }: BandLayout,
  index: number,
): void {
  const buckets = isLog ? logs : cells
  const key = prefix + suffix
  let bucket = buckets.get(key)
  if (bucket === undefined) {
    bucket = buckets.size + 1
    buckets.set(key, bucket)
    if (!isLog) firstUses[bucket] = index
  } else if (!isLog) {
    shares[index] = true
    shares[firstUses[bucket] as number] = true
  }
  if (isLog) shares[index] = true
  let bandNumber = bands.get(band)
  if (bandNumber === undefined) {
    bandNumber = bands.size + 1
    bands.set(band, bandNumber)
    terms.push(kind, band.capacity, band.refillTokens, band.windowTicks)
  }
  claimed.push(isLog ? -bucket : bucket, bandNumber)
}

/** A refund with `grantedAt` and a backdate address known buckets, so they need no lookup. */
const isLookedUp = ({ what, claims }: Work, claim: number): boolean =>
  what === 'REFUND' ? claims[claim]?.grantedAt === undefined : what !== 'BACKDATE'

/** Per lookup: the number of its work, of its first band there, how many it has, the first band and the first bucket. */
function lookupNumbers({ lookups, places, claimed }: Buckets, cellKeys: number): number[] {
  return lookups.flatMap(({ work, claim }, i) => {
    const [index, first, at] = places.slice(3 * i, 3 * i + 3) as [number, number, number]
    const { length } = (work.claims[claim] as Work['claims'][number]).group.bands
    // The bands of a group are numbered together, one after the other.
    return length === 0
      ? [index, first, 0, 0, 0]
      : [index, first, length, claimed[at + 1] as number, keyNumber(claimed[at] as number, cellKeys)]
  })
}

/** The keys of logs follow those of the cells. */
const keyNumber = (bucket: number, cellKeys: number): number => (bucket < 0 ? cellKeys - bucket : bucket)

/** The entries of the message, in the order of the works. */
interface Entries {
  readonly numbers: number[]
  count: number
  /** The number of keys before the first log. */
  readonly cellKeys: number
  /** The next index in `claimed` of the buckets. */
  at: number
  /** The charges of the current run, and the index of its number of decisions. */
  run: readonly Charge[] | undefined
  runAt: number
}

function addEntry(entries: Entries, buckets: Buckets, work: Work, index: number): void {
  // Leases are stored next to the numbers of a bucket, so they cannot use the simple write path.
  const isAlone = !buckets.shares[index] && work.what !== 'LEASE' && work.what !== 'SETTLE'
  const isPlain = work.what === 'CHARGE' && work.claims.every(({ shadow }) => !shadow)
  if (isPlain && isAlone) {
    addToRun(entries, buckets, work.claims)
    return
  }
  entries.run = undefined
  entries.count += 1
  if (isPlain) addPlain(entries, buckets, work.claims)
  else addOther(entries, buckets, work, isAlone)
}

/** All buckets of a run are new, so their numbers are consecutive. */
function addToRun(entries: Entries, { claimed }: Buckets, claims: readonly Charge[]): void {
  const { numbers } = entries
  if (entries.run !== undefined && asksTheSame(entries.run, claims)) {
    numbers[entries.runAt] = (numbers[entries.runAt] as number) + 1
    entries.at += 2 * (numbers[entries.runAt + 1] as number)
    return
  }
  entries.count += 1
  entries.run = claims
  entries.runAt = numbers.length + 1
  numbers.push(run, 1, 0, claimed[entries.at] ?? 1)
  for (const { group, permits, maxWaitTicks } of claims) {
    numbers[entries.runAt + 1] = (numbers[entries.runAt + 1] as number) + group.bands.length
    for (let band = 0; band < group.bands.length; band++, entries.at += 2)
      numbers.push(permits, maxWaitTicks, claimed[entries.at + 1] as number)
  }
}

function addPlain(entries: Entries, buckets: Buckets, claims: readonly Charge[]): void {
  const { numbers } = entries
  const head = numbers.length
  numbers.push(plain, 0)
  for (const { group, permits, maxWaitTicks } of claims) {
    numbers[head + 1] = (numbers[head + 1] as number) + group.bands.length
    for (let band = 0; band < group.bands.length; band++) {
      numbers.push(permits, maxWaitTicks)
      addNumbers(entries, buckets)
    }
  }
}

function addOther(entries: Entries, buckets: Buckets, work: Work, isAlone: boolean): void {
  const { numbers } = entries
  numbers.push(codes[work.what], isAlone ? 1 : 0, work.claims.length)
  for (let claim = 0; claim < work.claims.length; claim++) {
    const { bands } = (work.claims[claim] as Work['claims'][number]).group
    numbers.push(...termsOf(work, claim), bands.length)
    for (let band = 0; band < bands.length; band++) {
      addNumbers(entries, buckets)
      numbers.push(instantOf(work, claim, band))
    }
  }
}

/** Adds the number of the next bucket and of its band. */
function addNumbers(entries: Entries, { claimed }: Buckets): void {
  const { numbers, cellKeys, at } = entries
  numbers.push(keyNumber(claimed[at] as number, cellKeys), claimed[at + 1] as number)
  entries.at += 2
}

function asksTheSame(one: readonly Charge[], other: readonly Charge[]): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) {
    const { group, permits, maxWaitTicks } = one[i] as Charge
    const { group: otherGroup, permits: otherPermits, maxWaitTicks: otherWait } = other[i] as Charge
    if (group !== otherGroup || permits !== otherPermits || maxWaitTicks !== otherWait) return false
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
