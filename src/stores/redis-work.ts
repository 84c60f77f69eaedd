/**
 * What the script is asked, and what it answers, as numbers. The layout is described where it is read: in consume.lua.
 */
import { endianness } from 'node:os'
import { cellsOf, kindOf } from '../algorithms/index.js'
import type { BandResult, BucketGroup, ChargeResult, Demand, Refund } from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import type { Band } from '../core/rule.js'

/** Permits held by a process: how many at most, and at least. */
export interface LeaseWork {
  readonly group: BucketGroup
  readonly key: string
  readonly permits: number
  readonly wanted: number
}

/** Permits of a lease that ends at the tick `ending` and that are held no longer. */
export interface SettleWork {
  readonly group: BucketGroup
  readonly key: string
  readonly permits: number
  readonly ending: number
}

export type Work =
  | { readonly what: 'CHARGE' | 'PEEK'; readonly claims: readonly Demand[] }
  | { readonly what: 'REFUND'; readonly claims: readonly Refund[] }
  | { readonly what: 'LEASE'; readonly claims: readonly [LeaseWork] }
  | { readonly what: 'SETTLE'; readonly claims: readonly SettleWork[] }

const codes: Readonly<Record<Work['what'], number>> = { CHARGE: 0, PEEK: 1, REFUND: 2, LEASE: 3, SETTLE: 4 }

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
    default:
      return [(work.claims[index] as Refund | SettleWork).permits, 0, 0]
  }
}

const unset = -1

function instantOf(work: Work, index: number, band: number): number {
  if (work.what === 'REFUND') return work.claims[index]?.grantedAt?.[band] ?? unset
  return work.what === 'SETTLE' ? (work.claims[index] as SettleWork).ending : unset
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
  const cells = new Map<string, number>()
  const logs = new Map<string, number>()
  const bands = new Map<Band, number>()
  const decisions: number[] = []
  /** Where in `decisions` a log is named: logs are numbered after all the others. */
  const logPlaces: number[] = []
  for (const work of batch) {
    decisions.push(codes[work.what], work.claims.length)
    for (let claim = 0; claim < work.claims.length; claim++) {
      const { group, key } = work.claims[claim] as Work['claims'][number]
      const [permits, patience, third] = termsOf(work, claim)
      decisions.push(permits, patience, third, group.bands.length)
      for (let i = 0; i < group.bands.length; i++) {
        const band = group.bands[i] as Band
        const isLog = cellsOf(band) === undefined
        if (isLog) logPlaces.push(decisions.length)
        const name = names.keyOf(group, key, i)
        decisions.push(placeIn(isLog ? logs : cells, name), placeIn(bands, band), instantOf(work, claim, i))
      }
    }
  }
  for (const place of logPlaces) decisions[place] = (decisions[place] as number) + cells.size
  const numbers = [now, cells.size, bands.size, batch.length]
  for (const band of bands.keys()) numbers.push(kindOf(band), band.capacity, band.refillTokens, band.windowTicks)
  return { keys: [...cells.keys(), ...logs.keys()], numbers: littleEndian(numbers, decisions) }
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

/** The numbers of a bucket, as it was when it refused; undefined if nobody has used it, null if it is not told. */
export type BucketState = readonly number[] | undefined | null

export interface Answer extends ChargeResult {
  /** Per band, if the work was a charge that was refused. */
  readonly states?: readonly BucketState[]
  /** If the work was a lease that was granted: how many permits, to be spent before which tick. */
  readonly lease?: { readonly permits: number; readonly ending: number }
}

/** Reads the script's reply, one answer per work: an error is about its own work alone. */
export function decode(batch: readonly Work[], reply: unknown): (Answer | FluxGateError)[] {
  const numbers = reply as readonly unknown[]
  let place = 0
  const next = (): number => Number(numbers[place++])
  const now = next()
  return batch.map((work) => {
    const said = numbers[place++]
    if (typeof said === 'string' && !/^[01]$/.test(said))
      return new FluxGateError('FLUXGATE_STORE_FAILED', `The bucket store could not decide: ${said}.`)
    const granted = Number(said) === 1
    if (work.what === 'REFUND' || work.what === 'SETTLE') return { granted, now, bands: [] }
    const bands: BandResult[] = []
    let count = 0
    for (const { group } of work.claims) count += group.bands.length
    for (let i = 0; i < count; i++) bands.push(bandResult(next(), next(), next(), next()))
    if (work.what === 'LEASE' && granted) return { granted, now, bands, lease: { permits: next(), ending: next() } }
    if (work.what !== 'CHARGE' || granted) return { granted, now, bands }
    return { granted, now, bands, states: bands.map(() => bucketState(next)) }
  })
}

const bandResult = (retryAfter: number, delay: number, remaining: number, resetAt: number): BandResult => ({
  allowed: retryAfter === 0,
  delay,
  retryAfter: retryAfter < 0 ? Number.POSITIVE_INFINITY : retryAfter,
  remaining,
  resetAt,
})

function bucketState(next: () => number): BucketState {
  const size = next()
  if (size < 0) return null
  return size === 0 ? undefined : Array.from({ length: size }, next)
}
