/**
 * The fields of one record, as byte ranges. A field with quotes or escapes is copied in its unescaped form. The object is
 * reused for every record, so that parsing allocates no memory per record.
 */
export class Fields {
  count = 0
  #starts = new Float64Array(64)
  #ends = new Float64Array(64)
  #isCopy = new Uint8Array(64)
  #record: Buffer = Buffer.alloc(0)
  #copies = Buffer.allocUnsafeSlow(1024)
  #copied = 0
  #copyAt = 0

  begin(record: Buffer): void {
    this.#record = record
    this.count = 0
    this.#copied = 0
  }

  add(start: number, end: number): void {
    this.#put(start, end, 0)
  }

  /** Starts a copied field. `copy` adds bytes and `endCopy` ends it. */
  beginCopy(): void {
    this.#copyAt = this.#copied
  }

  copy(byte: number): void {
    if (this.#copied === this.#copies.length) {
      const larger = Buffer.allocUnsafeSlow(2 * this.#copies.length)
      this.#copies.copy(larger)
      this.#copies = larger
    }
    this.#copies[this.#copied++] = byte
  }

  endCopy(): void {
    this.#put(this.#copyAt, this.#copied, 1)
  }

  sourceOf(index: number): Buffer {
    return this.#isCopy[index] === 1 ? this.#copies : this.#record
  }

  startOf(index: number): number {
    return this.#starts[index] as number
  }

  endOf(index: number): number {
    return this.#ends[index] as number
  }

  sizeOf(index: number): number {
    return this.endOf(index) - this.startOf(index)
  }

  text(index: number): string {
    return this.sourceOf(index).toString('utf8', this.startOf(index), this.endOf(index))
  }

  #put(start: number, end: number, isCopy: number): void {
    if (this.count === this.#starts.length) this.#grow()
    this.#starts[this.count] = start
    this.#ends[this.count] = end
    this.#isCopy[this.count] = isCopy
    this.count++
  }

  #grow(): void {
    const larger = <T extends Float64Array | Uint8Array>(old: T, made: T): T => {
      made.set(old)
      return made
    }
    this.#starts = larger(this.#starts, new Float64Array(2 * this.count))
    this.#ends = larger(this.#ends, new Float64Array(2 * this.count))
    this.#isCopy = larger(this.#isCopy, new Uint8Array(2 * this.count))
  }
}
