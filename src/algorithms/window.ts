import type { Band } from '../core/rule.js'

/** The start of the window that holds `tick`. */
export const windowOf = (tick: number, band: Band): number => Math.floor(tick / band.windowTicks) * band.windowTicks

/**
 * The window that counts at `now`: the current one, or the later one that callers already wait for. The state begins with
 * its window and has the time of its writing at `start + at`. If time has stepped back since, the window moves back along,
 * so that what was counted is neither forgotten nor held against the caller for longer than a window.
 */
export function windowAt(cells: Float64Array, start: number, at: number, now: number, band: Band): number {
  const current = windowOf(now, band)
  const written = windowOf(cells[start] as number, band)
  const writtenAt = cells[start + at] as number
  if (now >= writtenAt) return Math.max(current, written)
  return current + Math.max(0, written - windowOf(writtenAt, band))
}
