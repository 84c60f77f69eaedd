/**
 * Sliding window log: at most `capacity` permits in any interval (t − window, t]. Exact, at the cost of storing every grant.
 *
 * A request that waits is logged with its release time. No request is released before the newest entry, which keeps the order
 * of arrival.
 */
import { type Buckets, newStep, type Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { answer, forcedPermits } from './answer.js'
import { type RequestLog, RingLog } from './request-log.js'

/** Computes one step as a pure function of (log, band, permits, now). */
function stepLog(
  log: RequestLog | undefined,
  band: Band,
  permits: number,
  now: number,
  maxWaitTicks: number,
  out: Step,
): void {
  const shift = log === undefined ? 0 : shiftOf(log, now)
  const newestAt = log?.newestAt === undefined ? undefined : log.newestAt + shift
  const counted = log === undefined ? 0 : log.grantedAfter(now - shift - band.windowTicks)
  const possible = permits > 0 && permits <= band.capacity
  const at = possible && log !== undefined ? earliest(log, band, permits, now, shift) : now
  const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : at - now
  const charged = answer(out, wait, permits, maxWaitTicks)
  const newest = charged ? at : newestAt
  out.remaining =
    newest !== undefined && newest > now ? 0 : Math.max(0, band.capacity - counted - (charged ? permits : 0))
  out.resetAt = newest === undefined ? now : Math.max(now, newest + band.windowTicks)
  out.changes = charged || shift !== 0
  putChange(out.next, band, now, shift, at, charged ? permits : 0)
}

/** If the clock has stepped back since the last write, all entries move back with it. */
const shiftOf = (log: RequestLog, now: number): number => Math.min(0, now - log.seenAt)

function earliest(log: RequestLog, band: Band, permits: number, now: number, shift: number): number {
  if (log.newestAt === undefined) return now
  const from = Math.max(now, log.newestAt + shift)
  const horizon = from - shift - band.windowTicks
  const excess = log.grantedAfter(horizon) + permits - band.capacity
  return excess <= 0 ? from : log.nthAfter(horizon, excess) + shift + band.windowTicks
}

function putChange(next: Float64Array, band: Band, now: number, shift: number, at: number, permits: number): void {
  next[0] = now
  next[1] = shift
  next[2] = now - band.windowTicks
  next[3] = at
  next[4] = permits
}

/** The buckets of the sliding window log, by slot. */
export class Logs implements Buckets {
  readonly #logs: (RingLog | undefined)[] = []
  readonly #next = newStep().next

  step(slot: number, band: Band, permits: number, now: number, maxWaitTicks: number, out: Step): void {
    stepLog(this.#logs[slot], band, permits, now, maxWaitTicks, out)
  }

  write(slot: number, next: Float64Array): void {
    this.#logs[slot] ??= new RingLog()
    const [seenAt = 0, shift = 0, forgetUntil = 0, at = 0, permits = 0] = next
    this.#logs[slot].apply({ seenAt, shift, forgetUntil, at, permits })
  }

  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void {
    const log = this.#logs[slot]
    if (log === undefined) return
    putChange(this.#next, band, now, shiftOf(log, now), grantedAt, -permits)
    this.write(slot, this.#next)
  }

  force(slot: number, band: Band, permits: number, now: number): void {
    const log = this.#logs[slot]
    const shift = log === undefined ? 0 : shiftOf(log, now)
    const counted = log === undefined ? 0 : log.grantedAfter(now - shift - band.windowTicks)
    const at = Math.max(now, (log?.newestAt ?? now - shift) + shift)
    putChange(this.#next, band, now, shift, at, forcedPermits(band, permits, band.capacity - counted))
    this.write(slot, this.#next)
  }

  /** Writes the log of `slot` to `targetSlot` of `target`, after `convert` has returned the new log. */
  convert(slot: number, convert: (log: RingLog) => RingLog, target: Logs, targetSlot: number): void {
    const log = this.#logs[slot]
    target.#logs[targetSlot] = log && convert(log)
  }

  expiresAt(slot: number, band: Band): number {
    const newestAt = this.#logs[slot]?.newestAt
    return newestAt === undefined ? 0 : newestAt + band.windowTicks
  }

  clear(slot: number): void {
    this.#logs[slot] = undefined
  }
}
