/** A ring buffer of the line and the record count of each unanswered command, in sending order. */
export class LineQueue {
  #lines = new Float64Array(256)
  #counts = new Float64Array(256)
  #first = 0
  length = 0

  push(line: number, records: number): void {
    if (this.length === this.#lines.length) this.#grow()
    const index = (this.#first + this.length) & (this.#lines.length - 1)
    this.#lines[index] = line
    this.#counts[index] = records
    this.length++
  }

  /** Only valid if the queue is not empty. */
  get firstRecords(): number {
    return this.#counts[this.#first] as number
  }

  get first(): number | undefined {
    return this.length === 0 ? undefined : this.#lines[this.#first]
  }

  /** Only valid if the queue is not empty. */
  shift(): number {
    const line = this.#lines[this.#first] as number
    this.#first = (this.#first + 1) & (this.#lines.length - 1)
    this.length--
    return line
  }

  #grow(): void {
    const unrolled = (old: Float64Array) => {
      const larger = new Float64Array(2 * this.length)
      for (let i = 0; i < this.length; i++) larger[i] = old[(this.#first + i) & (old.length - 1)] as number
      return larger
    }
    this.#lines = unrolled(this.#lines)
    this.#counts = unrolled(this.#counts)
    this.#first = 0
  }
}
