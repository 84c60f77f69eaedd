/**
 * The numbers of all identities under one rule: a row each, with four cells for every band that keeps its state in cells.
 * One flat array: 32 bytes a bucket, nothing for the garbage collector to trace, and the bands of one identity side by
 * side, so that two of them share a cache line. An unused bucket has NaN in its first cell.
 */
const cellsPerBand = 4

export class Rows {
  cells = new Float64Array(0)
  /** Cells per row. */
  stride = 0

  /** Makes every row one bucket longer; the result is where in a row it begins. */
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

  /** Makes room for a row; half as many again each time, so that it happens seldom. */
  grow(row: number): void {
    const rows = Math.max(16, row + 1, Math.ceil((this.cells.length / this.stride) * 1.5))
    const larger = new Float64Array(rows * this.stride)
    larger.set(this.cells)
    larger.fill(Number.NaN, this.cells.length)
    this.cells = larger
  }
}
