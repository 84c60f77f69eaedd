/** The lines of what was sent and not answered yet, in the order of sending. */
export class LineQueue {
  #lines = new Float64Array(256)
  #first = 0
  length = 0

  push(line: number): void {
    if (this.length === this.#lines.length) this.#grow()
    this.#lines[(this.#first + this.length) & (this.#lines.length - 1)] = line
    this.length++
  }

  get first(): number | undefined {
    return this.length === 0 ? undefined : this.#lines[this.#first]
  }

  /** Only if there is one. */
  shift(): number {
    const line = this.#lines[this.#first] as number
    this.#first = (this.#first + 1) & (this.#lines.length - 1)
    this.length--
    return line
  }

  #grow(): void {
    const lines = new Float64Array(2 * this.length)
    for (let i = 0; i < this.length; i++) lines[i] = this.#lines[(this.#first + i) & (this.#lines.length - 1)] as number
    this.#lines = lines
    this.#first = 0
  }
}
