import type { Band } from '../core/rule.js'

/** The start of the window that holds `tick`. */
export const windowOf = (tick: number, band: Band): number => Math.floor(tick / band.windowTicks) * band.windowTicks

/**
 * The window that `start`, written at `at`, stands for at `now`. Usually itself; if time has stepped back it moves back
 * along, so that what was counted is neither forgotten nor held against the caller for longer than a window.
 */
export function aheadOfTime(start: number, at: number, now: number, band: Band): number {
  const aligned = windowOf(start, band)
  return now < at ? windowOf(now, band) + Math.max(0, aligned - windowOf(at, band)) : aligned
}
