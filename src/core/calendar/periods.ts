import { algorithmTraits } from '../algorithm-traits.js'
import { ticksPerMs } from '../clock.js'
import type { Band } from '../rule.js'
import type { Calendar } from './calendar.js'
import { dayMs, type ZonedDays, zonedDays } from './zoned-days.js'

/** A period in ticks. `end` is the start of the next period. */
export interface Period {
  readonly start: number
  readonly end: number
}

/** The periods that were used last. More than two are in use only while requests wait for later periods. */
const maxRecent = 4
/** Starts of periods. Computing one takes about as long as ten decisions. */
const maxStarts = 1_000

/** The periods of a calendar. They are numbered, so that neighbouring periods can be found. */
export class Periods {
  readonly #calendar: Calendar
  readonly #days: ZonedDays
  #recent: readonly Period[] = []
  readonly #starts = new Map<number, number>()

  constructor(calendar: Calendar) {
    this.#calendar = calendar
    this.#days = zonedDays(calendar.timeZone)
  }

  /** The period that contains a tick. */
  at(tick: number): Period {
    for (const period of this.#recent) if (tick >= period.start && tick < period.end) return period
    const period = this.#find(tick)
    this.#recent = [period, ...this.#recent.slice(0, maxRecent - 1)]
    return period
  }

  /** The start of the period before the one that contains `from`, and all later starts until three of them are after `to`. */
  startsAround(from: number, to: number): number[] {
    let { start, end } = this.at(from)
    const starts = start === 0 ? [start] : [this.at(start - 1).start, start]
    while (start <= to) {
      starts.push(end)
      ;({ start, end } = this.at(end))
    }
    starts.push(end, this.at(end).end)
    return starts
  }

  #find(tick: number): Period {
    let number = this.#numberAt(tick)
    while (this.#startOf(number) > tick) number -= 1
    // A day that the time zone skips starts with the next one, so both have the same start.
    while (this.#startOf(number + 1) <= tick) number += 1
    return { start: Math.max(0, this.#startOf(number)), end: this.#startOf(number + 1) }
  }

  /** The number of the period, or of one next to it. */
  #numberAt(tick: number): number {
    const { unit, day } = this.#calendar
    const localDay = this.#days.dayAt(Math.floor(tick / ticksPerMs))
    if (unit === 'DAY') return localDay
    if (unit === 'WEEK') return Math.floor((localDay - firstMonday - (day - 1)) / 7)
    const date = new Date(localDay * dayMs)
    return unit === 'YEAR' ? date.getUTCFullYear() : date.getUTCFullYear() * 12 + date.getUTCMonth()
  }

  #startOf(number: number): number {
    const cached = this.#starts.get(number)
    if (cached !== undefined) return cached
    if (this.#starts.size >= maxStarts) this.#starts.clear()
    const start = this.#computeStart(number)
    this.#starts.set(number, start)
    return start
  }

  #computeStart(number: number): number {
    const { unit, month, day } = this.#calendar
    if (unit === 'DAY') return this.#ticksOf(number)
    if (unit === 'WEEK') return this.#ticksOf(number * 7 + firstMonday + day - 1)
    const months = unit === 'YEAR' ? number * 12 + month - 1 : number
    return this.#ticksOf(dayOfMonth(Math.floor(months / 12), months % 12, day))
  }

  #ticksOf(day: number): number {
    return this.#days.startOf(day) * ticksPerMs
  }
}

/** 1970-01-05. */
const firstMonday = 4

/** A day of a month, from 0, as the days since 1970-01-01; the last day of the month if it has fewer. */
const dayOfMonth = (year: number, month: number, day: number): number =>
  Math.min(Date.UTC(year, month, day), Date.UTC(year, month + 1, 0)) / dayMs

const known = new WeakMap<Calendar, Periods>()

/** The periods of a calendar, created once for each calendar object. */
export function periodsOf(calendar: Calendar): Periods {
  let periods = known.get(calendar)
  if (periods === undefined) {
    periods = new Periods(calendar)
    known.set(calendar, periods)
  }
  return periods
}

/** The window that decisions report for a band: of a calendar band, the length of the period that contains `tick`; 0 for CONCURRENCY. */
export function windowMsAt({ algorithm, calendar, windowTicks }: Band, tick: number): number {
  if (algorithmTraits[algorithm].takesHolds) return 0
  if (calendar === undefined) return windowTicks / ticksPerMs
  const { start, end } = periodsOf(calendar).at(tick)
  return (end - start) / ticksPerMs
}
