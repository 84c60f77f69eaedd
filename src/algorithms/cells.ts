import type { Buckets } from '../core/algorithm.js'

/**
 * Buckets whose state is a few numbers, all in one flat array: eight bytes a number, nothing for the garbage collector
 * to trace, one cache line to touch. An unused slot has NaN in its first cell.
 */
export class Cells implements Buckets<ArrayLike<number>, ArrayLike<number>> {
  readonly #width: number
  readonly #scratch: Float64Array
  #cells: Float64Array

  constructor(width: number) {
    this.#width = width
    this.#scratch = new Float64Array(width)
    this.#cells = new Float64Array(16 * width).fill(Number.NaN)
  }

  /** Valid until the next read: the array is reused. */
  read(slot: number): ArrayLike<number> | undefined {
    const start = slot * this.#width
    const cells = this.#cells
    const first = cells[start]
    if (first === undefined || Number.isNaN(first)) return undefined
    const scratch = this.#scratch
    scratch[0] = first
    for (let i = 1; i < this.#width; i++) scratch[i] = cells[start + i] as number
    return scratch
  }

  write(slot: number, state: ArrayLike<number>): void {
    const start = slot * this.#width
    if (start >= this.#cells.length) this.#grow(start + this.#width)
    for (let i = 0; i < this.#width; i++) this.#cells[start + i] = state[i] as number
  }

  clear(slot: number): void {
    if (slot * this.#width < this.#cells.length) this.#cells[slot * this.#width] = Number.NaN
  }

  #grow(needed: number): void {
    const larger = new Float64Array(Math.max(needed, Math.ceil((this.#cells.length * 1.5) / this.#width) * this.#width))
    larger.set(this.#cells)
    larger.fill(Number.NaN, this.#cells.length)
    this.#cells = larger
  }
}
