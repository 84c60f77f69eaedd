import { type Buckets, newStep, type Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'

/**
 * An algorithm whose state is at most four numbers, as pure functions of (state, band, permits, now). The state is at index
 * `start` of `cells`. A negative `start` is an unused bucket.
 */
export interface CellAlgorithm {
  /** The index within the state of the timestamp that moves back when the clock steps back. */
  readonly stamp: number
  step(
    cells: Float64Array,
    start: number,
    band: Band,
    permits: number,
    now: number,
    maxWaitTicks: number,
    out: Step,
  ): void
  /** Like `Buckets.take`, without changing the last cell. `start` is never negative; an unused bucket has NaN in its first cell. */
  take?(cells: Float64Array, start: number, band: Band, permits: number, now: number, out: Step): boolean
  /** Writes the state after a refund to `next`. Returns false if the permits cannot be refunded. */
  refund(
    cells: Float64Array,
    start: number,
    band: Band,
    permits: number,
    now: number,
    grantedAt: number,
    next: Float64Array,
  ): boolean
  /** Writes the state after a forced charge to `next`. */
  force(cells: Float64Array, start: number, band: Band, permits: number, now: number, next: Float64Array): void
  expiresAt(cells: Float64Array, start: number, band: Band): number
}

const cellsPerBand = 4

/**
 * The state of all buckets of a rule: one row per key, with four cells for each band of a `CellAlgorithm`. A flat array takes
 * 32 bytes per bucket, needs no tracing by the garbage collector, and stores the bands of a key side by side, so that two of
 * them share a cache line. An unused bucket has NaN in its first cell.
 */
export class Rows {
  cells = new Float64Array(0)
  /** Cells per row. */
  stride = 0

  /** Adds one bucket to every row. Returns its offset within a row. */
  addColumn(): number {
    const offset = this.stride
    const rows = offset === 0 ? 0 : this.cells.length / offset
    const wider = new Float64Array(rows * (offset + cellsPerBand)).fill(Number.NaN)
    this.stride += cellsPerBand
    for (let row = 0; row < rows; row++)
      wider.set(this.cells.subarray(row * offset, (row + 1) * offset), row * this.stride)
    this.cells = wider
    return offset
  }

  /** Grows the table to contain the row, by at least half its size, so that growing is rare. Returns the new cells. */
  grow(row: number): Float64Array {
    const rows = Math.max(16, row + 1, Math.ceil((this.cells.length / this.stride) * 1.5))
    const larger = new Float64Array(rows * this.stride)
    larger.set(this.cells)
    larger.fill(Number.NaN, this.cells.length)
    this.cells = larger
    return larger
  }
}

/** The buckets of a `CellAlgorithm`: one column of the table of a rule. */
export class Cells implements Buckets {
  readonly #algorithmOf: (band: Band) => CellAlgorithm
  #algorithm: CellAlgorithm
  readonly #rows: Rows
  readonly #offset: number
  readonly #scratch = newStep()

  /** `algorithmOf` returns algorithms with the same state. */
  constructor(algorithmOf: (band: Band) => CellAlgorithm, band: Band, rows: Rows) {
    this.#algorithmOf = algorithmOf
    this.#algorithm = algorithmOf(band)
    this.#rows = rows
    this.#offset = rows.addColumn()
  }

  bind(band: Band): void {
    this.#algorithm = this.#algorithmOf(band)
  }

  /** Writes the bucket of `slot` to `targetSlot` of `target`, after `convert` has returned its new state. */
  convert(
    slot: number,
    convert: (algorithmOf: (band: Band) => CellAlgorithm, cells: Float64Array, start: number) => Float64Array,
    target: Cells,
    targetSlot: number,
  ): void {
    const start = this.#startOf(slot)
    if (start < 0) target.clear(targetSlot)
    else target.write(targetSlot, convert(this.#algorithmOf, this.#rows.cells, start))
  }

  step(slot: number, band: Band, permits: number, now: number, maxWaitTicks: number, out: Step): void {
    this.#algorithm.step(this.#rows.cells, this.#startOf(slot), band, permits, now, maxWaitTicks, out)
  }

  take(slot: number, band: Band, permits: number, now: number, out: Step): boolean {
    const algorithm = this.#algorithm
    if (algorithm.take === undefined || slot < 0 || permits === 0) return false
    const { cells, stride } = this.#rows
    const start = slot * stride + this.#offset
    return start < cells.length && algorithm.take(cells, start, band, permits, now, out)
  }

  stepQuickly(slot: number, band: Band, permits: number, now: number, out: Step): boolean {
    const algorithm = this.#algorithm
    if (algorithm.take === undefined || slot < 0 || permits === 0) return false
    const { cells, stride } = this.#rows
    const start = slot * stride + this.#offset
    if (start >= cells.length || !algorithm.take(cells, start, band, permits, now, out)) return false
    const { next } = out
    const first = cells[start] as number
    const second = cells[start + 1] as number
    const third = cells[start + 2] as number
    cells[start] = next[0] as number
    cells[start + 1] = next[1] as number
    cells[start + 2] = next[2] as number
    next[0] = first
    next[1] = second
    next[2] = third
    return true
  }

  write(slot: number, next: Float64Array): void {
    const rows = this.#rows
    const start = slot * rows.stride + this.#offset
    const cells = start < rows.cells.length ? rows.cells : rows.grow(slot)
    cells[start] = next[0] as number
    cells[start + 1] = next[1] as number
    cells[start + 2] = next[2] as number
    cells[start + 3] = next[3] as number
  }

  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void {
    const start = this.#startOf(slot)
    if (start < 0) return
    const out = this.#scratch
    const changes = this.#algorithm.refund(this.#rows.cells, start, band, permits, now, grantedAt, out.next)
    // If the clock has stepped back, the bucket moves to the new time even without a refund.
    if (!changes) this.step(slot, band, 0, now, 0, out)
    if (changes || out.changes) this.write(slot, out.next)
  }

  force(slot: number, band: Band, permits: number, now: number): void {
    const { next } = this.#scratch
    this.#algorithm.force(this.#rows.cells, this.#startOf(slot), band, permits, now, next)
    this.write(slot, next)
  }

  expiresAt(slot: number, band: Band): number {
    const start = this.#startOf(slot)
    return start < 0 ? 0 : this.#algorithm.expiresAt(this.#rows.cells, start, band)
  }

  /** Like `expiresAt`, under another band. */
  expiresUnder(slot: number, band: Band): number {
    const start = this.#startOf(slot)
    return start < 0 ? 0 : this.#algorithmOf(band).expiresAt(this.#rows.cells, start, band)
  }

  clear(slot: number): void {
    const start = this.#startOf(slot)
    if (start >= 0) this.#rows.cells[start] = Number.NaN
  }

  /** The index of the state of a slot, or -1 if the bucket is unused. */
  #startOf(slot: number): number {
    const { cells, stride } = this.#rows
    const start = slot * stride + this.#offset
    return slot < 0 || start >= cells.length || Number.isNaN(cells[start] as number) ? -1 : start
  }
}

/** Writes the four numbers of a state. */
export function put(next: Float64Array, first: number, second: number, third: number, fourth: number): void {
  next[0] = first
  next[1] = second
  next[2] = third
  next[3] = fourth
}
