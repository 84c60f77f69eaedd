/** Encodes the input of the script. consume.lua describes the layout. */
import { endianness } from 'node:os'
import type { Charge, Refund, Settlement } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import { addLayout, type BandLayout, hashTagOf, plainKey } from './bucket-keys.js'
import type { Backdate, LastEdit, Lookup, Names, Operation } from './operation.js'
import type { CachedCharge } from './overrides/override-cache.js'

const plain = 0
const run = 7
const codes: Readonly<Record<Operation['type'], number>> = {
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
  /** True if an item uses the group of an override that is already known. */
  readonly namesOverrides: boolean
}

/** `now` is in ticks, or negative for the server's clock. `edit` is sent only if a rule has overrides. */
export function encode(batch: readonly Operation[], names: Names, now: number, edit: LastEdit): Message {
  const buckets = numberBuckets(batch, names)
  const { cells, logs, lookups, namesOverrides } = buckets
  const keys = [...cells.keys()]
  // The script reads the last edit together with the cells.
  if (buckets.mayOverride) keys.push(edit.key)
  const entries: Entries = { numbers: [], count: 0, cellKeys: keys.length, at: 0, run: undefined, runAt: 0 }
  for (let index = 0; index < batch.length; index++) addEntry(entries, buckets, batch[index] as Operation, index)
  keys.push(...logs.keys())
  const first = [now, entries.cellKeys, buckets.bands.size, entries.count, ...buckets.terms]
  const args: (string | Buffer)[] = [littleEndian(first, entries.numbers)]
  if (buckets.mayOverride) args.push(edit.known)
  if (lookups.length > 0) {
    args.push(littleEndian([namesOverrides ? 1 : 0], lookupNumbers(buckets, entries.cellKeys)))
    for (const { operation, item } of lookups) args.push((operation.items[item] as Operation['items'][number]).key)
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
  /** For each band of each operation: the number of its bucket, negative for a log, and the number of its band. */
  readonly bucketNumbers: number[]
  /** For each operation: true if it shares a bucket with another operation or uses a log. */
  readonly shares: boolean[]
  readonly lookups: Lookup[]
  readonly hashes: string[]
  /** Per lookup: the number of its operation, the number of its first band there, and where the item's bands begin in `bucketNumbers`. */
  readonly places: number[]
  /** True if a rule has overrides. */
  mayOverride: boolean
  /** True if an item uses the bucket of an override directly. */
  namesOverrides: boolean
}

function numberBuckets(batch: readonly Operation[], names: Names): Buckets {
  const buckets: Buckets = {
    cells: new Map(),
    logs: new Map(),
    bands: new Map(),
    terms: [],
    bucketNumbers: [],
    shares: new Array<boolean>(batch.length).fill(false),
    lookups: [],
    hashes: [],
    places: [],
    mayOverride: false,
    namesOverrides: false,
  }
  /** The first operation that uses each cell. */
  const firstUses: number[] = []
  for (let index = 0; index < batch.length; index++) {
    const operation = batch[index] as Operation
    const start = buckets.bucketNumbers.length
    for (let item = 0; item < operation.items.length; item++) {
      const { group, key, isCached } = operation.items[item] as Partial<CachedCharge> & Operation['items'][number]
      if (isCached) buckets.mayOverride = true
      else if (group.hasOverrides && isLookedUp(operation, item)) {
        buckets.mayOverride = true
        buckets.places.push(index + 1, (buckets.bucketNumbers.length - start) / 2 + 1, buckets.bucketNumbers.length)
        const { hash, otherwise } = names.overrideOf(group, key)
        buckets.lookups.push({ operation, item, otherwise })
        buckets.hashes.push(hash)
      }
      if (group.insteadOf !== undefined) buckets.namesOverrides = true
      const prefix = `${names.prefix}:{${plainKey.test(key) ? key : hashTagOf(key)}}`
      for (const layout of names.layouts.get(group) ?? addLayout(names.layouts, group))
        addBucket(buckets, firstUses, prefix, layout, index)
    }
  }
  return buckets
}

function addBucket(
  { cells, logs, bands, terms, bucketNumbers, shares }: Buckets,
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
  bucketNumbers.push(isLog ? -bucket : bucket, bandNumber)
}

/** A refund with `grantedAt` and a backdate address known buckets, so they need no lookup. */
const isLookedUp = ({ type, items }: Operation, item: number): boolean =>
  type === 'REFUND' ? items[item]?.grantedAt === undefined : type !== 'BACKDATE'

/** Per lookup: the number of its operation, of its first band there, how many it has, the first band and the first bucket. */
function lookupNumbers({ lookups, places, bucketNumbers }: Buckets, cellKeys: number): number[] {
  return lookups.flatMap(({ operation, item }, i) => {
    const [index, first, at] = places.slice(3 * i, 3 * i + 3) as [number, number, number]
    const { length } = (operation.items[item] as Operation['items'][number]).group.bands
    // The bands of a group are numbered together, one after the other.
    return length === 0
      ? [index, first, 0, 0, 0]
      : [index, first, length, bucketNumbers[at + 1] as number, keyNumber(bucketNumbers[at] as number, cellKeys)]
  })
}

/** The keys of logs follow those of the cells. */
const keyNumber = (bucket: number, cellKeys: number): number => (bucket < 0 ? cellKeys - bucket : bucket)

/** The entries of the message, in the order of the operations. */
interface Entries {
  readonly numbers: number[]
  count: number
  /** The number of keys before the first log. */
  readonly cellKeys: number
  /** The next index in `bucketNumbers` of the buckets. */
  at: number
  /** The charges of the current run, and the index of its number of decisions. */
  run: readonly Charge[] | undefined
  runAt: number
}

function addEntry(entries: Entries, buckets: Buckets, operation: Operation, index: number): void {
  // Leases are stored next to the numbers of a bucket, so they cannot use the simple write path.
  const isExclusive = !buckets.shares[index] && operation.type !== 'LEASE' && operation.type !== 'SETTLE'
  const isPlain = operation.type === 'CHARGE' && operation.items.every(({ shadow }) => !shadow)
  if (isPlain && isExclusive) {
    addToRun(entries, buckets, operation.items)
    return
  }
  entries.run = undefined
  entries.count += 1
  if (isPlain) addPlain(entries, buckets, operation.items)
  else addOther(entries, buckets, operation, isExclusive)
}

/** All buckets of a run are new, so their numbers are consecutive. */
function addToRun(entries: Entries, { bucketNumbers }: Buckets, items: readonly Charge[]): void {
  const { numbers } = entries
  if (entries.run !== undefined && isSameCharge(entries.run, items)) {
    numbers[entries.runAt] = (numbers[entries.runAt] as number) + 1
    entries.at += 2 * (numbers[entries.runAt + 1] as number)
    return
  }
  entries.count += 1
  entries.run = items
  entries.runAt = numbers.length + 1
  numbers.push(run, 1, 0, bucketNumbers[entries.at] ?? 1)
  for (const { group, permits, maxWaitTicks } of items) {
    numbers[entries.runAt + 1] = (numbers[entries.runAt + 1] as number) + group.bands.length
    for (let band = 0; band < group.bands.length; band++, entries.at += 2)
      numbers.push(permits, maxWaitTicks, bucketNumbers[entries.at + 1] as number)
  }
}

function addPlain(entries: Entries, buckets: Buckets, items: readonly Charge[]): void {
  const { numbers } = entries
  const head = numbers.length
  numbers.push(plain, 0)
  for (const { group, permits, maxWaitTicks } of items) {
    numbers[head + 1] = (numbers[head + 1] as number) + group.bands.length
    for (let band = 0; band < group.bands.length; band++) {
      numbers.push(permits, maxWaitTicks)
      addNumbers(entries, buckets)
    }
  }
}

function addOther(entries: Entries, buckets: Buckets, operation: Operation, isExclusive: boolean): void {
  const { numbers } = entries
  numbers.push(codes[operation.type], isExclusive ? 1 : 0, operation.items.length)
  for (let item = 0; item < operation.items.length; item++) {
    const { bands } = (operation.items[item] as Operation['items'][number]).group
    numbers.push(...termsOf(operation, item), bands.length)
    for (let band = 0; band < bands.length; band++) {
      addNumbers(entries, buckets)
      numbers.push(instantOf(operation, item, band))
    }
  }
}

/** Adds the number of the next bucket and of its band. */
function addNumbers(entries: Entries, { bucketNumbers }: Buckets): void {
  const { numbers, cellKeys, at } = entries
  numbers.push(keyNumber(bucketNumbers[at] as number, cellKeys), bucketNumbers[at + 1] as number)
  entries.at += 2
}

function isSameCharge(one: readonly Charge[], other: readonly Charge[]): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) {
    const { group, permits, maxWaitTicks } = one[i] as Charge
    const { group: otherGroup, permits: otherPermits, maxWaitTicks: otherWait } = other[i] as Charge
    if (group !== otherGroup || permits !== otherPermits || maxWaitTicks !== otherWait) return false
  }
  return true
}

/** The numbers of an item, in the order in which the script reads them. */
type Terms = readonly [permits: number, maxWaitTicks: number, third: number]

function termsOf(operation: Operation, index: number): Terms {
  switch (operation.type) {
    case 'CHARGE':
    case 'PEEK': {
      const { permits, maxWaitTicks, shadow } = operation.items[index] as Charge
      return [permits, maxWaitTicks, shadow ? 1 : 0]
    }
    case 'LEASE':
      return [operation.items[0].permits, 0, operation.items[0].wanted]
    case 'RESET':
      return [0, 0, 0]
    case 'BACKDATE':
      return [(operation.items[index] as Backdate).from, 0, 0]
    default:
      return [(operation.items[index] as Refund | Settlement).permits, 0, 0]
  }
}

const unset = -1

function instantOf(operation: Operation, index: number, band: number): number {
  if (operation.type === 'BACKDATE') return operation.items[index]?.instants[band] ?? unset
  if (operation.type === 'REFUND') return operation.items[index]?.grantedAt?.[band] ?? unset
  return operation.type === 'SETTLE' ? (operation.items[index] as Settlement).ending : unset
}

function littleEndian(first: readonly number[], second: readonly number[]): Buffer {
  const doubles = new Float64Array(first.length + second.length)
  doubles.set(first)
  doubles.set(second, first.length)
  const bytes = Buffer.from(doubles.buffer)
  return endianness() === 'LE' ? bytes : bytes.swap64()
}
