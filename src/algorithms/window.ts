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
