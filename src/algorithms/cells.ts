import type { Buckets } from '../core/algorithm.js'

/** What an algorithm keeps of a bucket: up to four numbers. */
export type CellState = ArrayLike<number>

const width = 4

/**
 * Buckets whose state is a few numbers, all in one flat array: 32 bytes a bucket, nothing for the garbage collector to
 * trace, half a cache line to touch. An unused slot has NaN in its first cell.
 */
export class Cells implements Buckets<CellState, CellState> {
  readonly #scratch = new Float64Array(width)
  #cells = new Float64Array(16 * width).fill(Number.NaN)

  /** Valid until the next read: the array is reused. */
  read(slot: number): CellState | undefined {
    const start = slot * width
    const cells = this.#cells
    if (start >= cells.length) return undefined
    const first = cells[start] as number
    if (Number.isNaN(first)) return undefined
    const scratch = this.#scratch
    scratch[0] = first
    scratch[1] = cells[start + 1] as number
    scratch[2] = cells[start + 2] as number
    scratch[3] = cells[start + 3] as number
    return scratch
  }

  write(slot: number, state: CellState): void {
    const start = slot * width
    if (start >= this.#cells.length) this.#grow(start + width)
    const cells = this.#cells
    cells[start] = state[0] as number
    cells[start + 1] = state[1] as number
    cells[start + 2] = state[2] as number
    cells[start + 3] = state[3] as number
  }

  clear(slot: number): void {
    if (slot * width < this.#cells.length) this.#cells[slot * width] = Number.NaN
  }

  #grow(needed: number): void {
    const larger = new Float64Array(Math.max(needed, Math.ceil((this.#cells.length * 1.5) / width) * width))
    larger.set(this.#cells)
    larger.fill(Number.NaN, this.#cells.length)
    this.#cells = larger
  }
}
