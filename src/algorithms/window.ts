import type { Calendar } from '../core/calendar/calendar.js'
import { periodsOf } from '../core/calendar/periods.js'
import type { Band } from '../core/rule.js'

/** The start of the window that contains `tick`. */
export const windowOf = (tick: number, band: Band): number => Math.floor(tick / band.windowTicks) * band.windowTicks

/**
 * The start of the window in which requests are counted at `now`: the current window, or a later one that requests already
 * wait for. The state starts with its window and has the time of its last write at `start + at`. If the clock has stepped back
 * since, the window moves back too, so that its count is neither lost nor kept for longer than one window.
 */
export function windowAt(cells: Float64Array, start: number, at: number, now: number, band: Band): number {
  const current = windowOf(now, band)
  const written = windowOf(cells[start] as number, band)
  const writtenAt = cells[start + at] as number
  if (now >= writtenAt) return Math.max(current, written)
  return current + Math.max(0, written - windowOf(writtenAt, band))
}

/** The windows of a band. */
export interface Windows {
  readonly of: typeof windowOf
  readonly at: typeof windowAt
  /** The start of the window after the one that starts at `start`. */
  after(start: number, band: Band): number
  /** The start of the window before the one that starts at `start`. */
  before(start: number, band: Band): number
}

export const fixedWindows: Windows = {
  of: windowOf,
  at: windowAt,
  after: (start, band) => start + band.windowTicks,
  before: (start, band) => start - band.windowTicks,
}

const periodAt = (tick: number, band: Band) => periodsOf(band.calendar as Calendar).at(tick)

/** Windows that are periods of a calendar. Twin of calendar-window.lua. */
export const calendarWindows: Windows = {
  of: (tick, band) => periodAt(tick, band).start,
  at(cells, start, at, now, band) {
    let current = periodAt(now, band)
    const written = periodAt(cells[start] as number, band)
    const writtenAt = cells[start + at] as number
    if (now >= writtenAt) return Math.max(current.start, written.start)
    let from = periodAt(writtenAt, band)
    while (from.start < written.start) {
      from = periodAt(from.end, band)
      current = periodAt(current.end, band)
    }
    return current.start
  },
  after: (start, band) => periodAt(start, band).end,
  before: (start, band) => periodAt(Math.max(0, start - 1), band).start,
}
