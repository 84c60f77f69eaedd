import type { CommandWriter } from '../../../redis/bulk/commands/command-writer.js'
import { argumentBytes, writeArgument } from '../../../redis/bulk/commands/command-writer.js'

const hset = Buffer.from('HSET')
const slots = 16_384
/** So many bytes of a slot wait for others: room for a dozen overrides with short keys. */
const waitingBytes = 512

/**
 * Overrides on their way into the hashes of their slots. Those of a slot wait for each other and go in one command, which
 * takes Redis less than half the time; what waits is bounded, however many there are. Of one key the last one counts, because
 * those of a slot keep their order.
 */
export class OverrideGroups {
  readonly #nameOf: (slot: number) => Buffer
  readonly #most: number
  readonly #names: Buffer[] = []
  readonly #waiting = Buffer.allocUnsafeSlow(slots * waitingBytes)
  readonly #lengths = new Uint16Array(slots)
  readonly #counts = new Uint8Array(slots)
  #next = 0

  /** `most` is how many go together. */
  constructor(nameOf: (slot: number) => Buffer, most: number) {
    this.#nameOf = nameOf
    this.#most = most
  }

  /** Takes the bytes of a key, and what it is to have. Whether a command was written, for all of its slot that waited. */
  add(slot: number, key: Buffer, from: number, to: number, value: Buffer, out: CommandWriter): boolean {
    const length = this.#lengths[slot] as number
    const count = this.#counts[slot] as number
    const needed = argumentBytes(to - from) + argumentBytes(value.length)
    if (count + 1 >= this.#most || length + needed > waitingBytes) {
      this.#begin(slot, count + 1, out)
      out.add(key, from, to)
      out.add(value)
      return true
    }
    const at = writeArgument(this.#waiting, slot * waitingBytes + length, key, from, to)
    const end = writeArgument(this.#waiting, at, value, 0, value.length)
    this.#lengths[slot] = end - slot * waitingBytes
    this.#counts[slot] = count + 1
    return false
  }

  /** Writes a command of those that wait, whether there are others or not; false if there is none. */
  flush(out: CommandWriter): boolean {
    while (this.#next < slots && this.#counts[this.#next] === 0) this.#next++
    if (this.#next === slots) return false
    this.#begin(this.#next, this.#counts[this.#next] as number, out)
    return true
  }

  /** A command about `records`, with all that waited. */
  #begin(slot: number, records: number, out: CommandWriter): void {
    this.#names[slot] ??= this.#nameOf(slot)
    out.begin(2 + 2 * records)
    out.records = records
    out.add(hset)
    out.add(this.#names[slot] as Buffer)
    const start = slot * waitingBytes
    out.addWritten(this.#waiting, start, start + (this.#lengths[slot] as number))
    this.#lengths[slot] = 0
    this.#counts[slot] = 0
  }
}
