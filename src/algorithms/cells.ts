import { type Buckets, newStep, type Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'

/**
 * An algorithm whose state is at most four numbers, as pure functions of (state, band, permits, now). The state is at
 * `start` in `cells`; a negative start means that there is none.
 */
export interface CellAlgorithm {
  step(cells: Float64Array, start: number, band: Band, permits: number, now: number, patience: number, out: Step): void
  /** Puts the state after a refund into `next`; false if there is nothing to take back. */
  refund(
    cells: Float64Array,
    start: number,
    band: Band,
    permits: number,
    now: number,
    grantedAt: number,
    next: Float64Array,
  ): boolean
  expiresAt(cells: Float64Array, start: number, band: Band): number
}

const width = 4

/**
 * Buckets of such an algorithm, all in one flat array: 32 bytes each, nothing for the garbage collector to trace, half a
 * cache line to touch. An unused slot has NaN in its first cell.
 */
export class Cells implements Buckets {
  readonly #algorithm: CellAlgorithm
  readonly #scratch = newStep()
  #cells = new Float64Array(16 * width).fill(Number.NaN)

  constructor(algorithm: CellAlgorithm) {
    this.#algorithm = algorithm
  }

  step(slot: number, band: Band, permits: number, now: number, patience: number, out: Step): void {
    this.#algorithm.step(this.#cells, this.#startOf(slot), band, permits, now, patience, out)
  }

  write(slot: number, next: Float64Array): void {
    const start = slot * width
    if (start >= this.#cells.length) this.#grow(start + width)
    const cells = this.#cells
    cells[start] = next[0] as number
    cells[start + 1] = next[1] as number
    cells[start + 2] = next[2] as number
    cells[start + 3] = next[3] as number
  }

  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void {
    const start = this.#startOf(slot)
    if (start < 0) return
    const out = this.#scratch
    const changes = this.#algorithm.refund(this.#cells, start, band, permits, now, grantedAt, out.next)
    // Nothing to take back: if time has stepped back, the bucket moves along all the same.
    if (!changes) this.step(slot, band, 0, now, 0, out)
    if (changes || out.changes) this.write(slot, out.next)
  }

  expiresAt(slot: number, band: Band): number {
    const start = this.#startOf(slot)
    return start < 0 ? 0 : this.#algorithm.expiresAt(this.#cells, start, band)
  }

  clear(slot: number): void {
    if (slot * width < this.#cells.length) this.#cells[slot * width] = Number.NaN
  }

  #startOf(slot: number): number {
    const start = slot * width
    const cells = this.#cells
    return slot < 0 || start >= cells.length || Number.isNaN(cells[start] as number) ? -1 : start
  }

  #grow(needed: number): void {
    const larger = new Float64Array(Math.max(needed, Math.ceil((this.#cells.length * 1.5) / width) * width))
    larger.set(this.#cells)
    larger.fill(Number.NaN, this.#cells.length)
    this.#cells = larger
  }
}

/** Writes four numbers, in the order of the state. */
export function put(next: Float64Array, first: number, second: number, third: number, fourth: number): void {
  next[0] = first
  next[1] = second
  next[2] = third
  next[3] = fourth
}
