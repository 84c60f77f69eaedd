import { FluxGateError } from '../../../core/errors.js'
import { commandIssue } from './issue.js'

/** A Redis command: its name and its arguments. */
export type Command = readonly (string | number | bigint | Uint8Array)[]

const star = 0x2a
const dollar = 0x24
const cr = 0x0d
const lf = 0x0a
const zero = 0x30

const bufferBytes = 64 * 1024
/** The maximum overhead of an argument: a prefix byte, up to ten digits and two line ends. */
const maxOverhead = 16
/** Up to this size, a loop is faster than a bulk copy. */
const shortBytes = 64
/** The number of arguments whose position is recorded. One of them is the key. */
const recordedArguments = 4

/**
 * Encodes commands in the Redis protocol into one buffer: `*<arguments>`, then `$<bytes>` and the bytes of each argument,
 * all lines ended by CR LF.
 */
export class CommandWriter {
  #bytes: Buffer = Buffer.allocUnsafeSlow(bufferBytes)
  #length = 0
  #commandAt = 0
  #argument = 0
  #openAt = 0
  readonly #starts = new Float64Array(recordedArguments)
  readonly #ends = new Float64Array(recordedArguments)
  readonly #spare: Buffer[] = []
  /** The number of records in the last command. */
  records = 1

  /** The number of bytes that were written and not taken yet. */
  get length(): number {
    return this.#length
  }

  /** Starts a command with `count` arguments, which must follow. */
  begin(count: number): void {
    this.#commandAt = this.#length
    this.#argument = 0
    this.records = 1
    this.#reserve(0)
    this.#prefix(star, count)
  }

  /** Adds a range of bytes as the next argument. */
  add(source: Uint8Array, from = 0, to = source.length): void {
    const size = to - from
    this.#reserve(size)
    this.#prefix(dollar, size)
    const start = this.#length
    if (size > shortBytes) this.#bytes.set(source.subarray(from, to), start)
    else for (let i = 0; i < size; i++) this.#bytes[start + i] = source[from + i] as number
    this.#end(start, start + size)
  }

  /** Adds UTF-8 text as the next argument. */
  addText(text: string): void {
    const size = Buffer.byteLength(text)
    this.#reserve(size)
    this.#prefix(dollar, size)
    const start = this.#length
    this.#bytes.write(text, start, 'utf8')
    this.#end(start, start + size)
  }

  /** Starts an argument of `size` bytes, which `append` adds and `close` ends. */
  open(size: number): void {
    this.#reserve(size)
    this.#prefix(dollar, size)
    this.#openAt = this.#length
  }

  append(source: Uint8Array, from = 0, to = source.length): void {
    this.#bytes.set(source.subarray(from, to), this.#length)
    this.#length += to - from
  }

  close(): void {
    this.#end(this.#openAt, this.#length)
  }

  /** Adds arguments that `writeArgument` has encoded. */
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

  /** One of the first four arguments of the last command, counted from 0. Valid until the next command is written. */
  argument(index: number): Buffer | undefined {
    if (index >= this.#argument || index >= recordedArguments) return undefined
    return this.#bytes.subarray(this.#starts[index], this.#ends[index])
  }

  /** Returns a copy of the last command. */
  lastCommand(): Buffer {
    return Buffer.from(this.#bytes.subarray(this.#commandAt, this.#length))
  }

  /** Removes the last command. */
  drop(): void {
    this.#length = this.#commandAt
  }

  /** Returns all bytes written since the last call. Pass them to `recycle` after sending, so that the buffer is reused. */
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
    const needed = this.#length + size + maxOverhead
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }

  #prefix(kind: number, value: number): void {
    this.#length = writePrefix(this.#bytes, this.#length, kind, value)
  }

  #end(start: number, end: number): void {
    if (this.#argument < recordedArguments) {
      this.#starts[this.#argument] = start
      this.#ends[this.#argument] = end
    }
    this.#argument++
    this.#bytes[end] = cr
    this.#bytes[end + 1] = lf
    this.#length = end + 2
  }
}

/** Writes a line of a prefix byte and a number. Returns the end position. */
function writePrefix(bytes: Buffer, start: number, kind: number, value: number): number {
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

/** Encodes one argument into a buffer of the caller. Returns the end position. */
export function writeArgument(bytes: Buffer, start: number, source: Uint8Array, from: number, to: number): number {
  let at = writePrefix(bytes, start, dollar, to - from)
  for (let i = from; i < to; i++) bytes[at++] = source[i] as number
  bytes[at++] = cr
  bytes[at++] = lf
  return at
}

/** The maximum number of encoded bytes of an argument of this size. */
export const argumentBytes = (size: number): number => size + maxOverhead

/**
 * Encodes one command in the Redis protocol (RESP2).
 *
 * @throws `FLUXGATE_ARGUMENT_INVALID` if the command is empty or an argument is not a string, a finite number, a bigint or
 * bytes.
 */
export function encodeCommand(command: Command): Buffer {
  const problem = commandIssue(command)
  if (problem !== undefined) throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `encodeCommand: ${problem}.`)
  const writer = new CommandWriter()
  writer.addCommand(command)
  return Buffer.from(writer.take())
}
