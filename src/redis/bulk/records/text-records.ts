import { FluxGateError } from '../../../core/errors.js'
import type { CommandWriter } from '../commands/writer.js'
import type { Encoded, RecordFormat, RecordSource } from './record-source.js'

const lf = 0x0a
const cr = 0x0d
const byteOrderMark = Buffer.from('\uFEFF')
/** The maximum size of a record. A larger one indicates a file without line ends or an unclosed quote. */
const maxRecordBytes = 64 * 2 ** 20

export interface TextRecordsOptions {
  /** Records that start before this line are skipped. */
  readonly fromLine?: number | undefined
}

/** Reads records from chunks of bytes. A record is a line, unless the format defines another end. */
export class TextRecords implements RecordSource {
  line = 0
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #format: RecordFormat
  readonly #fromLine: number
  #bytes = Buffer.allocUnsafeSlow(256 * 1024)
  #at = 0
  #end = 0
  #nextLine = 1
  #isFirst = true
  #hasEnded = false

  constructor(chunks: AsyncIterable<Uint8Array>, format: RecordFormat, { fromLine = 1 }: TextRecordsOptions = {}) {
    this.#chunks = chunks[Symbol.asyncIterator]()
    this.#format = format
    this.#fromLine = fromLine
  }

  next(out: CommandWriter): Encoded | undefined {
    const found = this.#endOfRecord()
    if (found < 0 && !this.#hasEnded) return undefined
    if (found < 0 && this.#at === this.#end) return this.#format.rest?.(out) ? 'rest' : undefined
    const from = this.#at
    const end = found < 0 ? this.#end : found
    this.#at = found < 0 ? end : end + 1
    this.line = this.#nextLine
    this.#nextLine += this.#format.endOf === undefined ? 1 : linesIn(this.#bytes, from, end)
    const to = end > from && this.#bytes[end - 1] === cr ? end - 1 : end
    const isHeading = this.line === 1 && this.#format.endOf !== undefined
    if (this.line < this.#fromLine && !isHeading) return 'nothing'
    const encoded = this.#format.encode(this.#bytes, from, to, out)
    if (this.line >= this.#fromLine || encoded !== 'written') return encoded
    out.drop()
    return 'nothing'
  }

  async more(): Promise<boolean> {
    if (this.#hasEnded) return false
    const { done, value } = await this.#chunks.next()
    if (done) {
      this.#hasEnded = true
      return this.#at < this.#end || this.#format.rest !== undefined
    }
    this.#append(value)
    return true
  }

  #endOfRecord(): number {
    if (this.#format.endOf !== undefined) return this.#format.endOf(this.#bytes, this.#at, this.#end)
    const found = this.#bytes.indexOf(lf, this.#at)
    return found < this.#end ? found : -1
  }

  /** Moves the unread bytes to the start of the buffer, so that memory use does not depend on the input size. */
  #append(chunk: Uint8Array): void {
    const left = this.#end - this.#at
    if (left + chunk.length > this.#bytes.length) {
      if (left > maxRecordBytes) throw this.#tooLong()
      const larger = Buffer.allocUnsafeSlow(2 * (left + chunk.length))
      this.#bytes.copy(larger, 0, this.#at, this.#end)
      this.#bytes = larger
    } else this.#bytes.copyWithin(0, this.#at, this.#end)
    this.#bytes.set(chunk, left)
    this.#at = 0
    this.#end = left + chunk.length
    // After the first line, the same bytes are part of a value.
    if (!this.#isFirst || this.#nextLine > 1 || this.#end < byteOrderMark.length) return
    this.#isFirst = false
    if (this.#bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark)) this.#at = byteOrderMark.length
  }

  #tooLong(): FluxGateError {
    return new FluxGateError(
      'FLUXGATE_BULK_INPUT_INVALID',
      `The record that starts in line ${this.#nextLine} is longer than ${maxRecordBytes} bytes. Check it for an unclosed quote or missing line ends.`,
    )
  }
}

function linesIn(bytes: Buffer, from: number, to: number): number {
  let lines = 1
  for (let at = bytes.indexOf(lf, from); at >= 0 && at < to; at = bytes.indexOf(lf, at + 1)) lines++
  return lines
}
