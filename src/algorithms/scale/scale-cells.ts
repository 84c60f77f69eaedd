/**
 * Converts the state of a bucket to another definition of its band, so that the used fraction is the same at `now`. Before
 * `now` the bucket follows its old definition, from then on the new one. Twin of scale-cells.lua.
 */
import { newStep } from '../../core/algorithm.js'
import { isSameCalendar } from '../../core/calendar/calendar.js'
import type { AlgorithmName, Band } from '../../core/rule.js'
import { type CellAlgorithm, put } from '../cells.js'
import { mulDiv, mulDivUp } from '../exact.js'
import { scaleLevel, scaleUp } from './shares.js'

export interface ScaleChange {
  /** The definition under which the state was written, in shares. */
  readonly from: Band
  /** The new definition. */
  readonly to: Band
  /** The number of shares of a full bucket after the change. */
  readonly shares: number
}

export function haveSameWindows(one: Band, other: Band): boolean {
  if (one.calendar === undefined || other.calendar === undefined)
    return one.calendar === other.calendar && one.windowTicks === other.windowTicks
  return isSameCalendar(one.calendar, other.calendar)
}

/** True if one band has windows of fixed length and the other a calendar, or if their calendars are different. */
export const haveOtherCalendars = (one: Band, other: Band): boolean =>
  (one.calendar !== undefined || other.calendar !== undefined) && !haveSameWindows(one, other)

/** Converts the state in `state`, which has been stepped to `now` unless the windows of a counter are the same. */
type ScaleState = (state: Float64Array, change: ScaleChange, now: number) => void

const scratch = new Float64Array(2)

/** The level of a token bucket, which is negative while requests wait. */
function scaleToken(state: Float64Array, { from, shares }: ScaleChange, now: number): void {
  const [whole, fraction, , window] = state as unknown as [number, number, number, number]
  const part = fraction > 0 ? 1 : 0
  scaleLevel(scratch, from.capacity - whole - part, part * window - fraction, window, shares, from.capacity)
  const [used, usedFraction] = scratch as unknown as [number, number]
  const rest = usedFraction > 0 ? 1 : 0
  put(state, shares - used - rest, rest * window - usedFraction, now, window)
}

/** The current interval keeps the part of it that is over. Waiting requests keep their release times. */
function scaleInterval(state: Float64Array, { from, to, shares }: ScaleChange, now: number): void {
  const [whole, since, lastAt, lastPermits] = state as unknown as [number, number, number, number]
  const start = from.windowTicks === to.windowTicks ? since : scaledTick(since, from, to, now)
  const waiting = lastPermits === Number.POSITIVE_INFINITY ? lastPermits : scaleUp(lastPermits, shares, from.capacity)
  put(state, shares - scaleUp(from.capacity - whole, shares, from.capacity), start, lastAt, waiting)
}

/** The water of a leaky bucket. The window may carry the mark of a debt. */
function scaleLeaky(state: Float64Array, { from, shares }: ScaleChange, now: number): void {
  const [whole, fraction, , window] = state as unknown as [number, number, number, number]
  scaleLevel(scratch, whole, fraction, from.windowTicks, shares, from.capacity)
  put(state, scratch[0] as number, scratch[1] as number, now, window)
}

/** The count moves to the new window that contains `now`. */
function scaleFixed(state: Float64Array, change: ScaleChange): void {
  const { from, shares } = change
  const [window, count, at, before] = state as unknown as [number, number, number, number]
  const scaled = scaleUp(count, shares, from.capacity)
  if (haveSameWindows(from, change.to))
    put(state, window, scaled, at, before < 0 ? before : scaleUp(before, shares, from.capacity))
  else put(state, Math.max(window, at), scaled, at, -1)
}

/** In windows of another length, the count and the weight of the previous window become the count of the new one. */
function scaleCounter(state: Float64Array, change: ScaleChange, now: number): void {
  const { from, shares } = change
  const [window, previous, current, at] = state as unknown as [number, number, number, number]
  const scaled = (count: number): number => scaleUp(count, shares, from.capacity)
  if (haveSameWindows(from, change.to)) put(state, window, scaled(previous), scaled(current), at)
  else {
    const counted = Math.max(window, now)
    const weight = mulDivUp(from.windowTicks - (counted - window), previous, from.windowTicks)
    put(state, counted, 0, scaled(current + weight), now)
  }
}

/** The tick that is at the same part of the new window as `tick` is of the old one, counted back from `now`. */
export const scaledTick = (tick: number, from: Band, to: Band, now: number): number =>
  tick >= now ? tick : now - mulDiv(now - tick, to.windowTicks, from.windowTicks)

function scaleOf({ algorithm, refill }: Band): ScaleState {
  return refill === 'INTERVAL' ? scaleInterval : (scales[algorithm] as ScaleState)
}

const scales: Partial<Record<AlgorithmName, ScaleState>> = {
  TOKEN_BUCKET: scaleToken,
  LEAKY_BUCKET: scaleLeaky,
  FIXED_WINDOW: scaleFixed,
  SLIDING_WINDOW_COUNTER: scaleCounter,
}

/** These count in windows, so that their state can be converted without stepping it to `now` if the windows stay the same. */
const countsWindows = ({ algorithm }: Band): boolean =>
  algorithm === 'FIXED_WINDOW' || algorithm === 'SLIDING_WINDOW_COUNTER'

const step = newStep()

/** Returns the converted state. It is valid until the next call. */
export function scaleCells(
  algorithm: CellAlgorithm,
  cells: Float64Array,
  start: number,
  change: ScaleChange,
  now: number,
): Float64Array {
  const { from, to } = change
  const { next } = step
  if (countsWindows(from) && haveSameWindows(from, to))
    put(
      next,
      cells[start] as number,
      cells[start + 1] as number,
      cells[start + 2] as number,
      cells[start + 3] as number,
    )
  else algorithm.step(cells, start, from, 0, now, 0, step)
  scaleOf(from)(next, change, now)
  return next
}
