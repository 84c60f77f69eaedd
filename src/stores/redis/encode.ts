/** Encodes the input of the script. consume.lua describes the layout. */
import type { Charge, Refund, Settlement } from '../../core/bucket-store.js'
import { periodsOf } from '../../core/calendar/periods.js'
import { bucketPrefix, type GroupLayout, hashTagOf, plainKey } from './bucket-keys.js'
import type { Backdate, EndedCharge, Ending, LastEdit, Lookup, Names, Operation } from './operation.js'
import type { CachedCharge } from './overrides/override-cache.js'

const termsPerBand = 4
const run = 7
/** The first key of a run that lists its keys. */
const listed = 0
const codes: Readonly<Record<Operation['type'], number>> = {
  CHARGE: 1,
  PEEK: 2,
  REFUND: 3,
  LEASE: 4,
  SETTLE: 5,
  RESET: 6,
  BACKDATE: 8,
  RELEASE: 22,
  RENEW: 23,
  FORCE: 24,
  PARTIAL: 25,
  RESERVE: 26,
  END: 27,
}
/** The codes of a CHARGE that takes holds, and of one that also waits for a release. */
const acquire = 21
const queue = 20

export interface Message {
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  readonly lookups: readonly Lookup[]
  /** True if an item uses the group of an override that is already known. */
  readonly namesOverrides: boolean
}

/** `now` is in ticks, or -1 for the server's clock. `edit` is sent only if a rule has overrides. */
export function encode(batch: readonly Operation[], names: Names, now: number, edit: LastEdit): Message {
  const buckets = numberKeys(batch, names)
  const { cells, logs, lookups, namesOverrides } = buckets
  const keys = [...cells.keys()]
  // The script reads the last edit together with the cells.
  if (buckets.mayOverride) keys.push(edit.key)
  const entries: Entries = {
    numbers: [],
    count: 0,
    cellKeys: keys.length,
    at: 0,
    run: undefined,
    runAt: 0,
    isListed: false,
    recordKeys: [],
  }
  for (let index = 0; index < batch.length; index++) addEntry(entries, buckets, batch[index] as Operation, index)
  for (const key of logs.keys()) keys.push(key)
  for (const key of entries.recordKeys) keys.push(key)
  const { terms } = buckets
  const numbers: Term[] = [
    now < 0 ? now - buckets.keepMs : now,
    entries.cellKeys,
    terms.length / termsPerBand,
    entries.count,
  ]
  const banTerms = buckets.hasBans ? addBans(keys, batch, names) : none
  const args: (string | Buffer)[] = [JSON.stringify(numbers.concat(terms, entries.numbers, banTerms))]
  if (buckets.mayOverride) args.push(edit.known)
  if (lookups.length > 0) {
    args.push(JSON.stringify([namesOverrides ? 1 : 0, ...lookupNumbers(buckets, entries.cellKeys)]))
    for (const { operation, item } of lookups) args.push((operation.items[item] as Operation['items'][number]).key)
    if (lookups.some(({ otherwise }) => otherwise.length > 0)) for (const { otherwise } of lookups) args.push(otherwise)
    keys.push(...buckets.hashes)
  }
  return { keys, args, lookups, namesOverrides }
}

/** A number of the message, or the description of a reservation. The window of a calendar band is the list of the ticks at which its periods start. */
type Term = number | string | readonly number[]

/** The distinct keys and bands of a batch, numbered from 1 in order of first use, and the overrides to look up. */
interface Buckets {
  readonly cells: Map<string, number>
  readonly logs: Map<string, number>
  /** The number of the first band of each rule. The others follow it. */
  readonly firstBands: Map<GroupLayout, number>
  /** Four terms per band. */
  readonly terms: Term[]
  /** For each item of each operation: the number of its key, negative with a log, and the number of its first band. */
  readonly itemNumbers: number[]
  /** For each operation: true if it uses a key twice, or has a log, a calendar, holds, a ban or a shadow rule. It is no part of a run. */
  readonly isSeparate: boolean[]
  /** For each operation: true if it shares a key with another one. */
  readonly isShared: boolean[]
  readonly lookups: Lookup[]
  readonly hashes: string[]
  /** Per lookup: the number of its operation, of its item there, and where the item is in `itemNumbers`. */
  readonly places: number[]
  /** True if a rule has overrides. */
  mayOverride: boolean
  /** True if an item uses the key of an override directly. */
  namesOverrides: boolean
  /** True if a rule has a ban. */
  hasBans: boolean
  /** The longest time for which a rule keeps keys after their buckets are full. */
  keepMs: number
}

const none: readonly Term[] = []

/** Adds the keys of bans. Returns the list that bans.lua describes, as one term. */
function addBans(keys: string[], batch: readonly Operation[], { prefix, layouts }: Names): readonly Term[] {
  const terms: number[] = []
  for (const [index, { type, items }] of batch.entries())
    for (const [item, { group, key }] of items.entries()) {
      const { ban } = group
      if (ban === undefined || !countsBans.has(type)) continue
      keys.push(bucketPrefix(prefix, key) + layouts.banSuffix(group))
      const { after, withinTicks, forTicks, factor, maxTicks } = ban
      terms.push(index + 1, item + 1, keys.length, after, withinTicks, forTicks, factor, maxTicks)
    }
  // `concat` adds the items of a list.
  return terms.length === 0 ? none : [terms]
}

/** The operations that bans concern. */
const countsBans: ReadonlySet<Operation['type']> = new Set(['CHARGE', 'PEEK', 'RESET', 'RESERVE'])

function numberKeys(batch: readonly Operation[], names: Names): Buckets {
  const { layouts } = names
  const buckets: Buckets = {
    cells: new Map(),
    logs: new Map(),
    firstBands: new Map(),
    terms: [],
    itemNumbers: [],
    isSeparate: new Array<boolean>(batch.length).fill(false),
    isShared: new Array<boolean>(batch.length).fill(false),
    lookups: [],
    hashes: [],
    places: [],
    mayOverride: false,
    namesOverrides: false,
    hasBans: false,
    keepMs: 0,
  }
  /** The last operation that uses each key without a log. */
  const lastUses: number[] = []
  for (let index = 0; index < batch.length; index++) {
    const operation = batch[index] as Operation
    for (let item = 0; item < operation.items.length; item++) {
      const { group, key, isCached, shadow } = operation.items[item] as Partial<CachedCharge> &
        Operation['items'][number]
      if (shadow) buckets.isSeparate[index] = true
      if (group.ban !== undefined) buckets.isSeparate[index] = buckets.hasBans = true
      if (isCached) buckets.mayOverride = true
      else if (group.hasOverrides && isLookedUp(operation, item)) {
        buckets.mayOverride = true
        buckets.places.push(index + 1, item + 1, buckets.itemNumbers.length)
        const { hash, otherwise } = names.overrideOf(group, key)
        buckets.lookups.push({ operation, item, otherwise })
        buckets.hashes.push(hash)
      }
      if (group.insteadOf !== undefined) buckets.namesOverrides = true
      const layout = layouts.byGroup.get(group) ?? layouts.add(group)
      const name = `${names.prefix}:{${plainKey.test(key) ? key : hashTagOf(key)}}${layout.suffix}`
      addItem(buckets, lastUses, name, layout, index, names)
    }
  }
  return buckets
}

function addItem(
  buckets: Buckets,
  lastUses: number[],
  name: string,
  layout: GroupLayout,
  index: number,
  names: Names,
): void {
  const { cells, logs, isSeparate, isShared, itemNumbers } = buckets
  const firstBand = firstBandOf(buckets, layout, names)
  if (layout.hasLog || layout.calendars !== undefined || layout.hasHolds) isSeparate[index] = true
  const known = cells.get(name)
  if (known !== undefined) {
    const last = lastUses[known] as number
    if (last === index) isSeparate[index] = true
    isShared[last] = isShared[index] = true
    lastUses[known] = index
    itemNumbers.push(known, firstBand)
  } else if (layout.hasLog || (logs.size > 0 && logs.has(name))) {
    const log = logs.get(name) ?? logs.size + 1
    logs.set(name, log)
    isSeparate[index] = true
    itemNumbers.push(-log, firstBand)
  } else {
    const cell = cells.size + 1
    cells.set(name, cell)
    lastUses[cell] = index
    itemNumbers.push(cell, firstBand)
  }
}

function firstBandOf(buckets: Buckets, layout: GroupLayout, names: Names): number {
  const { firstBands, terms } = buckets
  const known = firstBands.get(layout)
  if (known !== undefined) return known
  const first = terms.length / termsPerBand + 1
  firstBands.set(layout, first)
  buckets.keepMs = Math.max(buckets.keepMs, layout.keepMs)
  for (const term of layout.terms) terms.push(term)
  if (layout.calendars !== undefined) addPeriods(terms, first, layout.calendars, names)
  return first
}

/** Replaces the windows of calendar bands by their periods. */
function addPeriods(
  terms: Term[],
  first: number,
  calendars: NonNullable<GroupLayout['calendars']>,
  names: Names,
): void {
  const { from, to } = names.calendarSpan()
  for (const [i, calendar] of calendars.entries())
    if (calendar !== undefined) terms[(first + i) * termsPerBand - 1] = periodsOf(calendar).startsAround(from, to)
}

/** A refund with `grantedAt`, a backdate and the end of a reservation address known buckets, so they need no lookup. */
const isLookedUp = ({ type, items }: Operation, item: number): boolean =>
  type === 'REFUND' || type === 'RELEASE' ? items[item]?.grantedAt === undefined : type !== 'BACKDATE' && type !== 'END'

/** Per lookup: the number of its operation, of its item there, of its first band, its number of bands, and its key. */
function lookupNumbers({ lookups, places, itemNumbers }: Buckets, cellKeys: number): number[] {
  return lookups.flatMap(({ operation, item }, i) => {
    const [index, itemNumber, at] = places.slice(3 * i, 3 * i + 3) as [number, number, number]
    const { length } = (operation.items[item] as Operation['items'][number]).group.bands
    return [index, itemNumber, itemNumbers[at + 1] as number, length, keyNumber(itemNumbers[at] as number, cellKeys)]
  })
}

/** The keys with logs follow the others. */
const keyNumber = (key: number, cellKeys: number): number => (key < 0 ? cellKeys - key : key)

/** The entries of the message, in the order of the operations. */
interface Entries {
  readonly numbers: Term[]
  count: number
  /** The number of keys before the first with a log. */
  readonly cellKeys: number
  /** The next index in `itemNumbers`. */
  at: number
  /** The charges of the current run, and the index of its number of decisions. */
  run: readonly Charge[] | undefined
  runAt: number
  /** True if the current run lists its keys. */
  isListed: boolean
  /** The keys of the records of reservations, which follow those with logs. */
  readonly recordKeys: string[]
}

function addEntry(entries: Entries, buckets: Buckets, operation: Operation, index: number): void {
  if (operation.type === 'CHARGE' && !buckets.isSeparate[index]) {
    addToRun(entries, buckets, operation.items, buckets.isShared[index] as boolean)
    return
  }
  entries.run = undefined
  entries.count += 1
  addOther(entries, buckets, operation)
  if (operation.type === 'RESERVE' || operation.type === 'END') addRecord(entries, buckets, operation)
}

/** Adds what follows the items of an operation of reservations.lua. */
function addRecord(
  { numbers, recordKeys, cellKeys }: Entries,
  { logs }: Buckets,
  operation: Extract<Operation, { readonly type: 'RESERVE' | 'END' }>,
): void {
  const { recordKey, id } = operation.type === 'RESERVE' ? operation.reservation : operation.ending
  recordKeys.push(recordKey)
  numbers.push(cellKeys + logs.size + recordKeys.length, ...id)
  if (operation.type === 'RESERVE') {
    const { ttlTicks, isRefunded, text } = operation.reservation
    numbers.push(ttlTicks, isRefunded ? 1 : 0, text)
  } else numbers.push(endings.indexOf(operation.ending.kind), operation.ending.isTimed ? 1 : 0)
}

const endings: readonly Ending['kind'][] = ['SETTLE', 'CANCEL', 'ABORT']

/**
 * The keys of a run are new, so their numbers are consecutive. A run with an operation that shares a key with another one lists
 * the numbers instead.
 */
function addToRun(entries: Entries, { itemNumbers }: Buckets, items: readonly Charge[], isShared: boolean): void {
  const { numbers, at } = entries
  entries.at += 2 * items.length
  const isSameRun = entries.run !== undefined && (entries.isListed || !isShared) && isSameCharge(entries.run, items)
  if (isSameRun) numbers[entries.runAt] = (numbers[entries.runAt] as number) + 1
  else {
    entries.count += 1
    entries.run = items
    entries.isListed = isShared
    entries.runAt = numbers.length + 1
    numbers.push(run, 1, items.length, isShared ? listed : (itemNumbers[at] ?? 1))
    for (let item = 0; item < items.length; item++) {
      const { group, permits, maxWaitTicks } = items[item] as Charge
      numbers.push(permits, maxWaitTicks, itemNumbers[at + 2 * item + 1] as number, group.bands.length)
    }
  }
  if (entries.isListed)
    for (let item = 0; item < items.length; item++) numbers.push(itemNumbers[at + 2 * item] as number)
}

function addOther(entries: Entries, { itemNumbers }: Buckets, operation: Operation): void {
  const { numbers, cellKeys } = entries
  const { type, items } = operation
  const hasInstants = type === 'REFUND' || type === 'SETTLE' || type === 'BACKDATE' || type === 'RELEASE'
  const takesHolds = type === 'CHARGE' && items.some(({ hold }) => hold !== undefined)
  const isQueued = takesHolds && items.some((item) => item.isQueued)
  const hasHolds = takesHolds || type === 'RELEASE' || type === 'RENEW'
  numbers.push(isQueued ? queue : takesHolds ? acquire : codes[type], items.length)
  for (let item = 0; item < items.length; item++, entries.at += 2) {
    const { length } = (items[item] as Operation['items'][number]).group.bands
    const key = keyNumber(itemNumbers[entries.at] as number, cellKeys)
    numbers.push(...termsOf(operation, item), key, itemNumbers[entries.at + 1] as number, length)
    if (hasInstants) for (let band = 0; band < length; band++) numbers.push(instantOf(operation, item, band))
    if (hasHolds) {
      const { high = unset, low = unset } = (items[item] as Charge).hold ?? {}
      numbers.push(high, low)
    }
  }
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
    case 'RESERVE':
    case 'FORCE':
    case 'PEEK': {
      const { permits, maxWaitTicks, shadow } = operation.items[index] as Charge
      return [permits, maxWaitTicks, shadow ? 1 : 0]
    }
    case 'PARTIAL':
      return [operation.items[0].permits, operation.items[0].maxWaitTicks, operation.items[0].group.permits]
    case 'END': {
      const { permits, estimate } = operation.items[index] as EndedCharge
      return [permits, 0, estimate]
    }
    case 'LEASE':
      return [operation.items[0].permits, 0, operation.items[0].wanted]
    case 'RESET':
    case 'RENEW':
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
  if (operation.type === 'REFUND' || operation.type === 'RELEASE')
    return operation.items[index]?.grantedAt?.[band] ?? unset
  return operation.type === 'SETTLE' ? (operation.items[index] as Settlement).ending : unset
}
