import { periodsOf } from '../../core/calendar/periods.js'
import type { Band } from '../../core/rule.js'
import {
  type DefinitionChange,
  divideDown,
  divideUp,
  forcedPermits,
  larger,
  type Model,
  resultAt,
  scaleTick,
  scaleUsed,
  sizes,
  smaller,
} from './model.js'

interface Grant {
  readonly at: bigint
  permits: bigint
}

/** The properties of one window algorithm, in terms of all grants ever made. */
interface Lookback {
  /** The first tick, from `now` on, at which the permits fit. */
  earliest(history: History, band: Band, permits: bigint, now: bigint): bigint
  /** The new time of a grant when the clock steps back. */
  shift(at: bigint, band: Band, from: bigint, to: bigint): bigint
  /** The grants that still count after a step back, at their old times. Default: all grants. */
  kept?(history: History, band: Band, from: bigint): Grant[]
  /** Selects the grants that a refund for `grantedAt` can remove. Returns undefined if it is too late for a refund. */
  refundable(history: History, band: Band, now: bigint, grantedAt: bigint): ((grant: Grant) => boolean) | undefined
  /** Reopens the previous window if no request waits for the later one. */
  reopen?(history: History, band: Band, now: bigint): void
  /** Converts the grants to another definition whose windows are different. */
  scale(history: History, change: DefinitionChange, now: bigint): void
  /** True if all grants of a window are equivalent, so that they are scaled together. */
  readonly countsWindows: boolean
  remaining(history: History, band: Band, now: bigint): bigint
  /** The permits that are left, negative in debt. */
  available(history: History, band: Band, now: bigint): bigint
  resetAt(history: History, band: Band, now: bigint): bigint
  isUnused(history: History, band: Band, now: bigint): boolean
}

interface History {
  grants: Grant[]
  /** The latest release time. No later request is released before it. */
  newest: bigint | undefined
  writtenAt: bigint | undefined
  /** True if the window before the one that requests wait for can reopen. */
  reopens: boolean
}

function lookbackModel(lookback: Lookback, resetsNewest: boolean, from?: History): Model {
  const history: History = {
    grants: from?.grants.map((grant) => ({ ...grant })) ?? [],
    newest: from?.newest,
    writtenAt: from?.writtenAt,
    reopens: from?.reopens ?? false,
  }
  return {
    touch(band, now) {
      if (history.writtenAt === undefined || now >= history.writtenAt) return
      const { writtenAt } = history
      const shifted = (at: bigint): bigint => lookback.shift(at, band, writtenAt, now)
      const kept = lookback.kept?.(history, band, history.writtenAt) ?? history.grants
      history.grants = kept.map(({ at, permits }) => ({ at: shifted(at), permits }))
      if (history.newest !== undefined) history.newest = shifted(history.newest)
      history.writtenAt = now
    },
    peek(band, permits, now, maxWaitTicks) {
      if (permits > sizes(band).capacity) return resultAt(undefined, now, maxWaitTicks)
      return resultAt(lookback.earliest(history, band, permits, now), now, maxWaitTicks)
    },
    charge(band, permits, now, grantedAt) {
      const window = startOf(grantedAt, band)
      if (window > openWindow(history, band, now)) history.reopens = true
      else if (history.newest === undefined || startOf(history.newest, band) !== window) history.reopens = false
      history.grants.push({ at: grantedAt, permits })
      history.newest = grantedAt
      history.writtenAt = now
    },
    refund(band, permits, now, grantedAt) {
      const matches = lookback.refundable(history, band, now, grantedAt)
      if (history.writtenAt === undefined || matches === undefined) return
      let left = permits
      for (const grant of history.grants.filter(matches).toReversed()) {
        const taken = smaller(left, grant.permits)
        grant.permits -= taken
        left -= taken
      }
      history.grants = history.grants.filter((grant) => grant.permits > 0n)
      if (resetsNewest) history.newest = history.grants.at(-1)?.at
      else lookback.reopen?.(history, band, now)
      history.writtenAt = now
    },
    force(band, permits, now) {
      const taken = forcedPermits(band, permits, lookback.available(history, band, now))
      if (taken > 0n) this.charge(band, taken, now, larger(now, history.newest ?? now))
      else history.writtenAt = now
    },
    scale(change, now) {
      const { from, to } = change
      if (history.writtenAt === undefined) return
      if (hasSameWindows(from, to)) {
        history.grants = lookback.countsWindows ? scaleWindows(history, change) : scaleGrants(history.grants, change)
        return
      }
      this.touch(from, now)
      lookback.scale(history, change, now)
    },
    remaining: (band, now) => lookback.remaining(history, band, now),
    resetAt: (band, now) => lookback.resetAt(history, band, now),
    isUnused: (band, now) => lookback.isUnused(history, band, now),
    copy: () => lookbackModel(lookback, resetsNewest, history),
  }
}

/** The permits granted for ticks after `from` and up to `to`. */
function count(history: History, from: bigint, to: bigint): bigint {
  return history.grants.reduce((sum, { at, permits }) => (at > from && at <= to ? sum + permits : sum), 0n)
}

const infinity = 2n ** 64n

const startOf = (tick: bigint, { windowTicks, calendar }: Band): bigint =>
  calendar === undefined
    ? divideDown(tick, BigInt(windowTicks)) * BigInt(windowTicks)
    : BigInt(periodsOf(calendar).at(Number(tick)).start)

/** The start of the next window. */
const endOf = (start: bigint, { windowTicks, calendar }: Band): bigint =>
  calendar === undefined ? start + BigInt(windowTicks) : BigInt(periodsOf(calendar).at(Number(start)).end)

const inWindow = (history: History, start: bigint, band: Band): bigint =>
  count(history, start - 1n, endOf(start, band) - 1n)

/** The window in which requests are counted: the current one, or a later one that requests already wait for. */
const openWindow = (history: History, band: Band, now: bigint): bigint =>
  larger(startOf(now, band), startOf(history.newest ?? now, band))

const hasSameWindows = (one: Band, other: Band): boolean =>
  JSON.stringify(one.calendar ?? one.windowTicks) === JSON.stringify(other.calendar ?? other.windowTicks)

/** Scales the count of each window. */
function scaleWindows(history: History, change: DefinitionChange): Grant[] {
  const starts = new Set(history.grants.map(({ at }) => startOf(at, change.from)))
  return [...starts].map((at) => ({ at, permits: scaleUsed(inWindow(history, at, change.from), change) }))
}

/** Scales the grants so that the sum of a grant and all later ones is rounded once. */
function scaleGrants(grants: readonly Grant[], change: DefinitionChange): Grant[] {
  const sumFrom = (index: number): bigint => grants.slice(index).reduce((sum, { permits }) => sum + permits, 0n)
  return grants
    .map(({ at }, i) => ({ at, permits: scaleUsed(sumFrom(i), change) - scaleUsed(sumFrom(i + 1), change) }))
    .filter(({ permits }) => permits > 0n)
}

/** Replaces all grants by one. */
function replaceGrants(history: History, at: bigint, permits: bigint): void {
  history.grants = permits > 0n ? [{ at, permits }] : []
  history.newest = at
  history.reopens = false
}

/** Periods have different lengths, so a grant keeps its distance in periods. */
function shiftPeriods(at: bigint, band: Band, from: bigint, to: bigint): bigint {
  const period = startOf(at, band)
  let [origin, target] = [from, to]
  for (; origin < period; target = endOf(target, band)) origin = endOf(origin, band)
  for (; origin > period; target = startBefore(target, band)) origin = startBefore(origin, band)
  return target
}

/** The start of the previous window. */
const startBefore = (start: bigint, band: Band): bigint => startOf(larger(0n, start - 1n), band)

const aligned = {
  shift: (at: bigint, band: Band, from: bigint, to: bigint) =>
    band.calendar === undefined
      ? at + startOf(to, band) - startOf(from, band)
      : shiftPeriods(at, band, startOf(from, band), startOf(to, band)),
  resetAt: (history: History, band: Band, now: bigint) => endOf(openWindow(history, band, now), band),
}

export const fixedWindowModel = (): Model =>
  lookbackModel(
    {
      ...aligned,
      earliest(history, band, permits, now) {
        const open = openWindow(history, band, now)
        const fits = inWindow(history, open, band) + permits <= sizes(band).capacity
        return larger(now, fits ? open : endOf(open, band))
      },
      refundable(history, band, now, grantedAt) {
        const window = startOf(grantedAt, band)
        return window === openWindow(history, band, now) ? ({ at }) => startOf(at, band) === window : undefined
      },
      countsWindows: true,
      /** The count belongs to the new window that contains now. */
      scale(history, change, now) {
        const { from } = change
        const open = openWindow(history, from, now)
        replaceGrants(history, larger(open, now), scaleUsed(inWindow(history, open, from), change))
        history.writtenAt = now
      },
      reopen(history, band, now) {
        const open = openWindow(history, band, now)
        if (!history.reopens || open <= now || inWindow(history, open, band) > 0n) return
        history.newest = open - 1n
        history.reopens = false
      },
      remaining(history, band, now) {
        const open = openWindow(history, band, now)
        return open > now ? 0n : larger(0n, sizes(band).capacity - inWindow(history, open, band))
      },
      available: (history, band, now) => sizes(band).capacity - inWindow(history, openWindow(history, band, now), band),
      isUnused: (history, band, now) =>
        openWindow(history, band, now) <= now && count(history, startOf(now, band) - 1n, infinity) === 0n,
    },
    false,
  )

/** The weighted count at a tick, multiplied by the window, so that it is an integer. */
function weighted(history: History, band: Band, at: bigint): bigint {
  const { window } = sizes(band)
  const start = startOf(at, band)
  return inWindow(history, start - window, band) * (window - (at - start)) + inWindow(history, start, band) * window
}

export const slidingCounterModel = (): Model =>
  lookbackModel(
    {
      ...aligned,
      /** The previous window keeps its weight, as if that many permits had been granted in the open window. */
      kept(history, band, from) {
        const { window } = sizes(band)
        const open = openWindow(history, band, from)
        const part = window - (larger(from, open) - open)
        const kept = divideUp(inWindow(history, open - window, band) * part, window)
        const current = history.grants.filter(({ at }) => startOf(at, band) === open)
        return [...(kept > 0n ? [{ at: open, permits: kept }] : []), ...current]
      },
      countsWindows: true,
      /** The weighted count becomes the count of the new window. */
      scale(history, change, now) {
        const { from } = change
        const { window } = sizes(from)
        const open = openWindow(history, from, now)
        const used = divideUp(weighted(history, from, larger(open, now)), window)
        replaceGrants(history, larger(open, now), scaleUsed(used, change))
        history.writtenAt = now
      },
      /** Evaluates the definition window by window, with a bisection within each. */
      earliest(history, band, permits, now) {
        const { capacity, window } = sizes(band)
        const fits = (at: bigint): boolean => weighted(history, band, at) + permits * window <= capacity * window
        let start = openWindow(history, band, now)
        while (!fits(start + window - 1n)) start += window
        let low = larger(start, now)
        let high = start + window - 1n
        while (low < high) {
          const middle = (low + high) / 2n
          if (fits(middle)) high = middle
          else low = middle + 1n
        }
        return low
      },
      refundable(history, band, now, grantedAt) {
        const open = openWindow(history, band, now)
        const window = startOf(grantedAt, band)
        const known = window === open || window === open - sizes(band).window
        return known ? ({ at }) => startOf(at, band) === window : undefined
      },
      remaining(history, band, now) {
        const { capacity, window } = sizes(band)
        if (openWindow(history, band, now) > now) return 0n
        return larger(0n, capacity - divideUp(weighted(history, band, now), window))
      },
      available(history, band, now) {
        const { capacity, window } = sizes(band)
        return capacity - divideUp(weighted(history, band, larger(now, openWindow(history, band, now))), window)
      },
      isUnused: (history, band, now) =>
        openWindow(history, band, now) <= now &&
        count(history, startOf(now, band) - sizes(band).window - 1n, infinity) === 0n,
    },
    false,
  )

export const slidingLogModel = (): Model =>
  lookbackModel(
    {
      earliest(history, band, permits, now) {
        const { capacity, window } = sizes(band)
        const from = larger(now, history.newest ?? now)
        const leaving = history.grants.map(({ at }) => at + window).filter((at) => at > from)
        return [from, ...leaving].find((at) => count(history, at - window, at) + permits <= capacity) as bigint
      },
      shift: (at, _band, from, to) => at + to - from,
      countsWindows: false,
      /** A grant keeps the part of the window after which it expires. */
      scale(history, change, now) {
        const grants = history.grants.filter(({ at }) => at > now - sizes(change.from).window)
        history.grants = scaleGrants(grants, change).map(({ at, permits }) => ({
          at: scaleTick(at, change, now),
          permits,
        }))
        history.newest = history.grants.at(-1)?.at
        history.writtenAt = now
      },
      refundable:
        (_history, _band, _now, grantedAt) =>
        ({ at }) =>
          at <= grantedAt,
      remaining(history, band, now) {
        const { capacity, window } = sizes(band)
        return (history.newest ?? now) > now ? 0n : larger(0n, capacity - count(history, now - window, now))
      },
      available: (history, band, now) => sizes(band).capacity - count(history, now - sizes(band).window, infinity),
      resetAt: (history, band, now) =>
        history.newest === undefined ? now : larger(now, history.newest + sizes(band).window),
      isUnused: (history, band, now) => count(history, now - sizes(band).window, infinity) === 0n,
    },
    true,
  )
