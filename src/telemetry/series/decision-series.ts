import type { Clock } from '../../core/clock.js'
import type { DurationHistogram } from '../duration-histogram.js'
import type { CountedRule, RuleCounters } from '../rule-counters.js'
import { countNames, type ResolutionName, Ring, resolutions, rowLength } from './ring.js'

/** Selects a series: all decisions, those of a rule set, or those of a rule. */
export interface SeriesQuery {
  readonly resolution: ResolutionName
  readonly ruleSetId?: string | undefined
  readonly ruleId?: string | undefined
  /** Only intervals that end after this time, in epoch milliseconds. */
  readonly since?: number | undefined
}

/** The numbers of consecutive, completed intervals. `rows[i]` belongs to the interval `first + i`. */
export interface SeriesRows {
  readonly first: number
  readonly rows: readonly (readonly number[])[]
}

interface Series {
  readonly rings: Readonly<Record<ResolutionName, Ring>>
  /** The second of the last decision. */
  usedAt: number
}

/** Bounds the memory: a series takes 225 KiB. */
const maxSeries = 64

const names = Object.keys(resolutions) as ResolutionName[]

/**
 * Decisions per second of the last 15 minutes and per minute of the last 24 hours: in total, by rule set and by rule. Reads the
 * counters once per second, so decisions cost nothing. If there are more rule sets and rules than series, rules
 * that become active later have no series until another one was unused for 15 minutes.
 */
export class DecisionSeries {
  readonly #clock: Clock
  readonly #counters: RuleCounters
  readonly #durations: DurationHistogram
  readonly #total = newSeries()
  readonly #byName = new Map<string, Series>()
  /** The numbers of each rule at the previous tick. */
  readonly #before = new WeakMap<CountedRule, number[]>()
  #durationsBefore: readonly number[] = []
  #second = -1

  constructor(clock: Clock, counters: RuleCounters, durations: DurationHistogram) {
    this.#clock = clock
    this.#counters = counters
    this.#durations = durations
  }

  /** Must be called about once per second. Attributes the decisions since the last call to the second that has ended. */
  secondPassed(): void {
    const second = Math.max(this.#second, Math.round(this.#clock.now() / 1_000) - 1)
    this.#second = second
    const total: number[] = new Array(rowLength).fill(0)
    const sets = new Map<string, number[]>()
    const rules = new Map<string, readonly number[]>()
    for (const row of this.#counters.counted()) {
      const now = numbersOf(row)
      const change = changeOf(now, this.#before.get(row))
      if (change === undefined) continue
      this.#before.set(row, now)
      sum(total, change)
      const { ruleSetId, ruleId } = row
      if (ruleSetId === null) continue
      sets.set(ruleSetId, sum(sets.get(ruleSetId) ?? new Array(rowLength).fill(0), change))
      if (ruleId !== null) rules.set(nameOf(ruleSetId, ruleId), change)
    }
    // The histogram of all decisions weights the timed ones, so it replaces the sum of the rules.
    const durations = [...this.#durations.counts]
    for (const [i, count] of durations.entries()) total[countNames.length + i] = count - (this.#durationsBefore[i] ?? 0)
    this.#durationsBefore = durations
    record(this.#total, second, total)
    // Rule sets first, because they are fewer than rules.
    for (const [ruleSetId, change] of sets) this.#add(nameOf(ruleSetId, undefined), second, change)
    for (const [name, change] of rules) this.#add(name, second, change)
  }

  /** The completed intervals of a series. Zeros if it has had no decisions. */
  read({ resolution, ruleSetId, ruleId, since = 0 }: SeriesQuery): SeriesRows {
    const { stepMs, size } = resolutions[resolution]
    const end = Math.floor(((this.#second + 1) * 1_000) / stepMs)
    const first = Math.max(end - size, Math.floor(since / stepMs), 0)
    const series = ruleSetId === undefined ? this.#total : this.#byName.get(nameOf(ruleSetId, ruleId))
    const ring = series?.rings[resolution]
    const rows = Array.from({ length: Math.max(0, end - first) }, (_, i) => ring?.read(first + i) ?? noNumbers)
    return { first, rows }
  }

  /** The rule sets and rules that have a series. */
  names(): readonly { readonly ruleSetId: string; readonly ruleId: string | null }[] {
    return [...this.#byName.keys()].map((name) => {
      const [ruleSetId, ruleId] = JSON.parse(name) as [string, string | null]
      return { ruleSetId, ruleId }
    })
  }

  #add(name: string, second: number, change: readonly number[]): void {
    let series = this.#byName.get(name)
    if (series === undefined) {
      if (this.#byName.size >= maxSeries && !this.#dropUnused(second)) return
      series = newSeries()
      this.#byName.set(name, series)
    }
    record(series, second, change)
  }

  /** Drops the series that was unused for the longest time. Returns false if all were used within 15 minutes. */
  #dropUnused(second: number): boolean {
    const [name, { usedAt }] = [...this.#byName].reduce((one, other) => (other[1].usedAt < one[1].usedAt ? other : one))
    return second - usedAt > resolutions['1s'].size && this.#byName.delete(name)
  }
}

const noNumbers: readonly number[] = Object.freeze(new Array(rowLength).fill(0))

const newSeries = (): Series => ({
  rings: { '1s': new Ring(resolutions['1s']), '1m': new Ring(resolutions['1m']) },
  usedAt: 0,
})

const nameOf = (ruleSetId: string, ruleId: string | undefined): string => JSON.stringify([ruleSetId, ruleId ?? null])

function numbersOf(row: CountedRule): number[] {
  const { allowed, delayed, denied, shadowDenied, degraded, durations } = row
  return [allowed, delayed, denied, shadowDenied, degraded, ...durations.counts]
}

/** The difference; undefined if nothing has changed. */
function changeOf(now: readonly number[], before: readonly number[] | undefined): number[] | undefined {
  let hasChanged = false
  const change = now.map((count, i) => {
    const by = count - (before?.[i] ?? 0)
    if (by !== 0) hasChanged = true
    return by
  })
  return hasChanged ? change : undefined
}

function sum(into: number[], change: readonly number[]): number[] {
  for (let i = 0; i < rowLength; i++) (into[i] as number) += change[i] as number
  return into
}

function record(series: Series, second: number, change: readonly number[]): void {
  series.usedAt = second
  for (const name of names) {
    const ring = series.rings[name]
    ring.add(Math.floor((second * 1_000) / ring.resolution.stepMs), change)
  }
}
