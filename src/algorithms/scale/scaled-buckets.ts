import type { Buckets, CountedAs, Step } from '../../core/algorithm.js'
import type { Band } from '../../core/rule.js'
import { Cells } from '../cells.js'
import type { RingLog } from '../request-log.js'
import { Logs } from '../sliding-window-log.js'
import { haveOtherCalendars, haveSameWindows, type ScaleChange, scaleCells, scaledTick } from './scale-cells.js'
import { inShares, maxLogShares, maxShares, scaleUp, sharesFor } from './shares.js'

/** Buckets whose state can be converted to another definition. */
export type Scalable = Cells | Logs

/** The definition under which a bucket was written, and the shares of a full bucket. */
interface Written {
  readonly definition: Band
  readonly shares: number
}

/**
 * Buckets that keep their used fraction when the definition of their band changes. A bucket follows the definition under which it
 * was written until a request is decided under another one. Buckets that were written under the current definition only, which
 * is nearly all of them, take the path without conversion.
 */
export class ScaledBuckets implements Buckets {
  readonly #buckets: Scalable
  /** Holds a converted bucket in its first slot, for peeks, which change nothing. */
  readonly #view: Scalable
  readonly #max: number
  /** By slot. */
  readonly #written: (Written | undefined)[] = []
  /** Shared by all buckets that were written under the current definition only. */
  #current: Written
  /** The last band in shares, because most calls are about the same one. */
  #lastBand: { readonly band: Band; readonly perPermit: number; readonly inShares: Band } | undefined

  constructor(buckets: Scalable, view: Scalable, definition: Band) {
    this.#buckets = buckets
    this.#view = view
    this.#max = buckets instanceof Logs ? maxLogShares : maxShares
    this.#current = { definition, shares: definition.capacity }
  }

  bind(band: Band, definition: Band = band): void {
    if (this.#buckets instanceof Cells) this.#buckets.bind(band)
    if (this.#view instanceof Cells) this.#view.bind(band)
    if (!isSameDefinition(definition, this.#current.definition))
      this.#current = { definition, shares: definition.capacity }
  }

  rebase(slot: number, band: Band, now: number): void {
    const written = this.#written[slot]
    if (written === undefined || written === this.#current) return
    const target = this.#targetOf(written, band)
    const isKept = this.#current.definition.capacity === 0
    if ((!isKept && this.#startsFull(written)) || this.expiresAt(slot, band) <= now) this.clear(slot)
    else if (target !== undefined && target !== written) {
      this.#convert(slot, written, target, now, this.#buckets, slot)
      this.#written[slot] = target
    }
  }

  step(slot: number, band: Band, permits: number, now: number, maxWaitTicks: number, out: Step): void {
    const written = slot < 0 ? undefined : this.#written[slot]
    if (written === undefined || written === this.#current) {
      this.#buckets.step(slot, band, permits, now, maxWaitTicks, out)
      return
    }
    const target = this.#targetOf(written, band)
    if (target === undefined || this.expiresAt(slot, band) <= now) {
      this.#buckets.step(-1, band, permits, now, maxWaitTicks, out)
      return
    }
    const isConverted = target === written
    if (!isConverted) this.#convert(slot, written, target, now, this.#view, 0)
    const perPermit = perPermitOf(target)
    const buckets = isConverted ? this.#buckets : this.#view
    buckets.step(isConverted ? slot : 0, this.#inShares(band, perPermit), permits * perPermit, now, maxWaitTicks, out)
    out.remaining = Math.floor(out.remaining / perPermit)
    // A peek never writes a converted bucket, not even if the clock has stepped back.
    if (!isConverted) out.changes = false
  }

  stepQuickly(slot: number, band: Band, permits: number, now: number, out: Step): boolean {
    if (slot < 0 || this.#written[slot] !== this.#current || this.#buckets instanceof Logs) return false
    return this.#buckets.stepQuickly(slot, band, permits, now, out)
  }

  write(slot: number, next: Float64Array): void {
    this.#buckets.write(slot, next)
    const written = this.#written[slot]
    if (written === undefined || !isSameDefinition(written.definition, this.#current.definition))
      this.#written[slot] = this.#current
  }

  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void {
    this.#change(slot, band, now, (inShares, perPermit) =>
      this.#buckets.refund(slot, inShares, permits * perPermit, now, grantedAt),
    )
  }

  force(slot: number, band: Band, permits: number, now: number): void {
    this.#change(slot, band, now, (inShares, perPermit) => {
      this.#buckets.force(slot, inShares, permits * perPermit, now)
      this.#written[slot] ??= this.#current
    })
  }

  /** A bucket that was not converted yet follows its old definition. */
  expiresAt(slot: number, band: Band): number {
    const { band: counted } = this.countedAs(slot, band)
    if (this.#buckets instanceof Logs) return this.#buckets.expiresAt(slot, counted)
    return this.#buckets.expiresUnder(slot, counted)
  }

  /** A bucket that was not converted yet is counted under its old definition. */
  countedAs(slot: number, band: Band): CountedAs {
    const buckets = this.#buckets
    const written = this.#written[slot] ?? this.#current
    const { definition, shares } = written
    if (written === this.#current || shares === 0) return { buckets, band, perPermit: 1, capacity: shares }
    const terms = isSameDefinition(definition, this.#current.definition) ? band : definition
    const perPermit = perPermitOf(written)
    return { buckets, band: this.#inShares(terms, perPermit), perPermit, capacity: shares }
  }

  clear(slot: number): void {
    this.#written[slot] = undefined
    this.#buckets.clear(slot)
  }

  /** Changes a bucket, which is converted first, unless the new capacity is 0. */
  #change(slot: number, band: Band, now: number, change: (inShares: Band, perPermit: number) => void): void {
    this.rebase(slot, band, now)
    const written = this.#written[slot] ?? this.#current
    if (written === this.#current) change(band, 1)
    else if (this.#targetOf(written, band) === written) {
      const perPermit = perPermitOf(written)
      change(this.#inShares(band, perPermit), perPermit)
    }
  }

  /** True if the old definition has no used fraction: nothing can be used of a capacity of 0, or its periods are of another calendar. */
  #startsFull({ definition, shares }: Written): boolean {
    return shares === 0 || haveOtherCalendars(definition, this.#current.definition)
  }

  /**
   * The definition and the shares of a bucket after it is used with this band, or undefined if it counts as unused. With a new capacity of 0, a bucket
   * under the old definition is kept unchanged.
   */
  #targetOf(written: Written, band: Band): Written | undefined {
    const { definition } = this.#current
    if (definition.capacity === 0 || this.#startsFull(written)) return undefined
    const largest = Math.max(band.capacity, band.refillTokens, definition.refillTokens)
    const shares = sharesFor(written.shares, definition.capacity, largest, this.#max)
    if (shares === written.shares && isSameDefinition(definition, written.definition)) return written
    return shares === definition.capacity ? this.#current : { definition, shares }
  }

  #convert(slot: number, from: Written, to: Written, now: number, target: Scalable, targetSlot: number): void {
    const change: ScaleChange = {
      from: inShares(from.definition, perPermitOf(from)),
      to: to.definition,
      shares: to.shares,
    }
    if (this.#buckets instanceof Logs)
      this.#buckets.convert(slot, (log) => scaleLog(log, change, now), target as Logs, targetSlot)
    else
      this.#buckets.convert(
        slot,
        (algorithmOf, cells, start) => scaleCells(algorithmOf(change.from), cells, start, change, now),
        target as Cells,
        targetSlot,
      )
  }

  #inShares(band: Band, perPermit: number): Band {
    if (perPermit === 1) return band
    if (this.#lastBand?.band !== band || this.#lastBand.perPermit !== perPermit)
      this.#lastBand = { band, perPermit, inShares: inShares(band, perPermit) }
    return this.#lastBand.inShares
  }
}

const perPermitOf = ({ definition, shares }: Written): number => shares / definition.capacity

const isSameDefinition = (one: Band, other: Band): boolean =>
  one === other ||
  (one.capacity === other.capacity && one.refillTokens === other.refillTokens && haveSameWindows(one, other))

/** With windows of another length, the entries keep the part of the window after which they expire. */
function scaleLog(log: RingLog, { from, to, shares }: ScaleChange, now: number): RingLog {
  const permitsOf = (permits: number): number => scaleUp(permits, shares, from.capacity)
  if (haveSameWindows(from, to))
    return shares === from.capacity
      ? log
      : log.converted({ seenAt: log.seenAt, forgetUntil: Number.NEGATIVE_INFINITY, tickOf: (tick) => tick, permitsOf })
  const shift = Math.min(0, now - log.seenAt)
  return log.converted({
    seenAt: now,
    forgetUntil: now - shift - from.windowTicks,
    tickOf: (tick) => scaledTick(tick + shift, from, to, now),
    permitsOf,
  })
}
