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

  /** Grows the table to contain the row, by at least half its size, so that growing is rare. */
  grow(row: number): void {
    const rows = Math.max(16, row + 1, Math.ceil((this.cells.length / this.stride) * 1.5))
    const larger = new Float64Array(rows * this.stride)
    larger.set(this.cells)
    larger.fill(Number.NaN, this.cells.length)
    this.cells = larger
  }
}
