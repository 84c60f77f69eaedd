import { BadResponse } from './response-head.js'

const maxTrailerLength = 16_384
/** Size lines hold a size and, rarely, extensions that nobody reads. */
const maxSizeLine = 4_096

const cr = 0x0d
const lf = 0x0a
const semicolon = 0x3b

type State = 'SIZE' | 'EXTENSION' | 'SIZE_END' | 'DATA' | 'DATA_CR' | 'DATA_LF' | 'TRAILERS' | 'DONE'

/** Takes a chunked body apart, strictly: every line ends in CR LF, sizes are hexadecimal digits and nothing else. */
export class ChunkDecoder {
  readonly #onData: (chunk: Buffer) => void
  #state: State = 'SIZE'
  #left = 0
  #lineLength = 0
  #digits = 0
  trailerText = ''

  constructor(onData: (chunk: Buffer) => void) {
    this.#onData = onData
  }

  reset(): void {
    this.#state = 'SIZE'
    this.#left = 0
    this.#lineLength = 0
    this.#digits = 0
    this.trailerText = ''
  }

  get isDone(): boolean {
    return this.#state === 'DONE'
  }

  /** The offset of what it did not take, because the body ended before it. */
  execute(buffer: Buffer, start: number): number {
    let at = start
    while (at < buffer.length && this.#state !== 'DONE') {
      if (this.#state === 'DATA') at = this.#data(buffer, at)
      else if (this.#state === 'TRAILERS') at = this.#trailers(buffer, at)
      else this.#byte(buffer[at++] as number)
    }
    return at
  }

  #data(buffer: Buffer, at: number): number {
    const end = Math.min(buffer.length, at + this.#left)
    this.#left -= end - at
    if (this.#left === 0) this.#state = 'DATA_CR'
    this.#onData(buffer.subarray(at, end))
    return end
  }

  #byte(byte: number): void {
    switch (this.#state) {
      case 'SIZE':
        this.#size(byte)
        return
      case 'EXTENSION':
        if (byte === lf || ++this.#lineLength > maxSizeLine) throw new BadResponse('a chunk has no proper size')
        if (byte === cr) this.#state = 'SIZE_END'
        return
      case 'SIZE_END':
        this.#expect(byte, lf)
        this.#state = this.#left === 0 ? 'TRAILERS' : 'DATA'
        return
      case 'DATA_CR':
        this.#expect(byte, cr)
        this.#state = 'DATA_LF'
        return
      default:
        this.#expect(byte, lf)
        this.#state = 'SIZE'
        this.#lineLength = 0
        this.#digits = 0
    }
  }

  #size(byte: number): void {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      if (++this.#digits > 12) throw new BadResponse('a chunk is too large')
      this.#left = this.#left * 16 + digit
    } else if (this.#digits > 0 && byte === cr) this.#state = 'SIZE_END'
    else if (this.#digits > 0 && byte === semicolon) this.#state = 'EXTENSION'
    else throw new BadResponse('a chunk has no proper size')
  }

  #expect(byte: number, wanted: number): void {
    if (byte !== wanted) throw new BadResponse('a chunk does not end where it should')
  }

  #trailers(buffer: Buffer, at: number): number {
    const before = this.trailerText.length
    const text = this.trailerText + buffer.toString('latin1', at, Math.min(buffer.length, at + maxTrailerLength))
    const end = text.startsWith('\r\n') ? 2 : endOfBlock(text)
    if (end === undefined) {
      if (text.length >= maxTrailerLength) throw new BadResponse('its trailers are too long')
      this.trailerText = text
      return buffer.length
    }
    this.trailerText = text.slice(0, end)
    this.#state = 'DONE'
    return at + end - before
  }
}

function endOfBlock(text: string): number | undefined {
  const end = text.indexOf('\r\n\r\n')
  return end === -1 ? undefined : end + 4
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
