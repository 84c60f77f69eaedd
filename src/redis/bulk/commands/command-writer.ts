import { FluxGateError } from '../../../core/errors.js'
import { commandMistake } from './command-mistake.js'

/** How Redis reads commands: `*<arguments>`, then each as `$<bytes>` and the bytes, every line ended by CR LF. */
export type Command = readonly (string | number | bigint | Uint8Array)[]

const star = 0x2a
const dollar = 0x24
const cr = 0x0d
const lf = 0x0a
const zero = 0x30

const bufferBytes = 64 * 1024
/** What surrounds an argument: a mark, at most ten digits, and two line ends. */
const mostAround = 16
/** Up to here a loop is quicker than asking for a copy. */
const shortBytes = 64
/** Where the first arguments of a command begin and end is remembered: a key is among them. */
const remembered = 4

/**
 * Commands as bytes, one behind the other. Lengths are of bytes, so that text in any language and bytes of any kind
 * arrive as they are.
 */
export class CommandWriter {
  #bytes: Buffer = Buffer.allocUnsafeSlow(bufferBytes)
  #length = 0
  #commandAt = 0
  #argument = 0
  #openAt = 0
  readonly #starts = new Float64Array(remembered)
  readonly #ends = new Float64Array(remembered)
  readonly #spare: Buffer[] = []
  /** How many records the last command is made of. */
  records = 1

  /** Of all that was written and not taken yet. */
  get length(): number {
    return this.#length
  }

  /** Begins a command of so many arguments, which have to follow. */
  begin(count: number): void {
    this.#commandAt = this.#length
    this.#argument = 0
    this.records = 1
    this.#reserve(0)
    this.#mark(star, count)
  }

  /** The next argument: some of the bytes of a buffer. */
  add(source: Uint8Array, from = 0, to = source.length): void {
    const size = to - from
    this.#reserve(size)
    this.#mark(dollar, size)
    const start = this.#length
    if (size > shortBytes) this.#bytes.set(source.subarray(from, to), start)
    else for (let i = 0; i < size; i++) this.#bytes[start + i] = source[from + i] as number
    this.#end(start, start + size)
  }

  /** The next argument: text, as UTF-8. */
  addText(text: string): void {
    const size = Buffer.byteLength(text)
    this.#reserve(size)
    this.#mark(dollar, size)
    const start = this.#length
    this.#bytes.write(text, start, 'utf8')
    this.#end(start, start + size)
  }

  /** The next argument, put together of parts by `append`: `size` bytes in all. */
  open(size: number): void {
    this.#reserve(size)
    this.#mark(dollar, size)
    this.#openAt = this.#length
  }

  append(source: Uint8Array, from = 0, to = source.length): void {
    this.#bytes.set(source.subarray(from, to), this.#length)
    this.#length += to - from
  }

  close(): void {
    this.#end(this.#openAt, this.#length)
  }

  /** The next arguments, as `writeArgument` has written them. */
  addWritten(source: Uint8Array, from: number, to: number): void {
    this.#reserve(to - from)
    this.append(source, from, to)
  }

  addCommand(command: Command): void {
    this.begin(command.length)
    for (const part of command) {
      if (typeof part === 'object') this.add(part)
      else this.addText(typeof part === 'string' ? part : String(part))
    }
  }

  /** The first byte of the last command's name. */
  get nameByte(): number {
    return this.#bytes[this.#starts[0] as number] as number
  }

  get nameLength(): number {
    return (this.#ends[0] as number) - (this.#starts[0] as number)
  }

  /** An argument of the last command, from 0; only of the first four. Valid until the next one is written. */
  argument(index: number): Buffer | undefined {
    if (index >= this.#argument || index >= remembered) return undefined
    return this.#bytes.subarray(this.#starts[index], this.#ends[index])
  }

  /** The bytes of the last command, as a copy. */
  lastCommand(): Buffer {
    return Buffer.from(this.#bytes.subarray(this.#commandAt, this.#length))
  }

  /** Takes the last command out again. */
  drop(): void {
    this.#length = this.#commandAt
  }

  /** All that was written since the last time. Whoever gives it back to `recycle` once it is sent keeps memory level. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#bytes = this.#spare.pop() ?? Buffer.allocUnsafeSlow(bufferBytes)
    this.#length = 0
    this.#commandAt = 0
    return taken
  }

  recycle(taken: Buffer): void {
    if (taken.buffer.byteLength === bufferBytes && this.#spare.length < 8) this.#spare.push(Buffer.from(taken.buffer))
  }

  #reserve(size: number): void {
    const needed = this.#length + size + mostAround
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }

  #mark(kind: number, value: number): void {
    this.#length = writeMark(this.#bytes, this.#length, kind, value)
  }

  #end(start: number, end: number): void {
    if (this.#argument < remembered) {
      this.#starts[this.#argument] = start
      this.#ends[this.#argument] = end
    }
    this.#argument++
    this.#bytes[end] = cr
    this.#bytes[end + 1] = lf
    this.#length = end + 2
  }
}

/** Writes a mark and a number as a line; where it ends. */
function writeMark(bytes: Buffer, start: number, kind: number, value: number): number {
  let at = start
  bytes[at++] = kind
  let unit = 1
  while (unit * 10 <= value) unit *= 10
  for (let rest = value; unit >= 1; unit = Math.floor(unit / 10)) {
    const digit = Math.floor(rest / unit)
    bytes[at++] = zero + digit
    rest -= digit * unit
  }
  bytes[at++] = cr
  bytes[at++] = lf
  return at
}

/** Writes an argument of a command that is put together elsewhere; where it ends. */
export function writeArgument(bytes: Buffer, start: number, source: Uint8Array, from: number, to: number): number {
  let at = writeMark(bytes, start, dollar, to - from)
  for (let i = from; i < to; i++) bytes[at++] = source[i] as number
  bytes[at++] = cr
  bytes[at++] = lf
  return at
}

/** As many bytes as an argument of this size takes at most. */
export const argumentBytes = (size: number): number => size + mostAround

/** One command as Redis reads it. */
export function encodeCommand(command: Command): Buffer {
  const mistake = commandMistake(command)
  if (mistake !== undefined) throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `encodeCommand: ${mistake}.`)
  const writer = new CommandWriter()
  writer.addCommand(command)
  return Buffer.from(writer.take())
}
