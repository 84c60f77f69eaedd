import { randomUUID } from 'node:crypto'
import type { CommandWriter } from '../commands/command-writer.js'
import { LineQueue } from '../records/line-queue.js'
import { isServerTrouble, stopped, type Tally } from '../tally.js'
import { addressOf, type BulkSocket } from './bulk-socket.js'
import { errorIn, type Reply } from './reply-reader.js'
import { type BulkSink, Waiter } from './sink.js'

/** So much is sent at once. */
export const sendBytes = 48 * 1024

/**
 * One server. Commands go out in the order of their records, at most `most` before the replies to them; which reply is to
 * which record follows from the order. An ECHO of a random text at the end must be the last reply: if it is not, commands
 * and replies did not match, and nothing that was counted is to be trusted.
 */
export class ServerSink implements BulkSink {
  onStop: (error: Error) => void = () => {}
  readonly #socket: BulkSocket
  readonly #out: CommandWriter
  readonly #tally: Tally
  readonly #most: number
  readonly #lines = new LineQueue()
  readonly #waiter = new Waiter()
  readonly #end = randomUUID()
  #isBlocked = false
  #isAskedForEnd = false
  #hasEnded = false
  #troubleLine: number | undefined

  constructor(socket: BulkSocket, out: CommandWriter, tally: Tally, most: number) {
    this.#socket = socket
    this.#out = out
    this.#tally = tally
    this.#most = most
    socket.listen(
      (reply) => this.#answered(reply),
      (error) => this.#stop(stopped(`${addressOf(socket.node)}: ${error.message}`, error)),
    )
    socket.onDrain(() => {
      this.#isBlocked = false
      this.#waiter.look()
    })
  }

  get isFull(): boolean {
    return this.#lines.length >= this.#most || this.#out.length >= sendBytes
  }

  get unansweredLine(): number | undefined {
    return this.#troubleLine ?? this.#lines.first
  }

  put(line: number): void {
    if (this.#lines.length === 0) this.#socket.expect(true)
    this.#lines.push(line, this.#out.records)
  }

  flush(): Promise<void> | undefined {
    if (this.#waiter.error !== undefined) return Promise.reject(this.#waiter.error)
    if (this.#out.length > 0) {
      const bytes = this.#out.take()
      this.#isBlocked = !this.#socket.write(bytes, () => this.#out.recycle(bytes))
    }
    if (!this.#isBlocked && this.#lines.length < this.#most) return undefined
    // Half of them at once: a few at a time would be as many calls of the system as commands.
    return this.#waiter.until(() => !this.#isBlocked && this.#lines.length <= this.#most / 2)
  }

  async finish(): Promise<void> {
    this.#socket.expect(true)
    this.#socket.listenClosely()
    this.#isAskedForEnd = true
    this.#out.addCommand(['ECHO', this.#end])
    await this.flush()
    await this.#waiter.until(() => this.#hasEnded)
  }

  close(): void {
    this.#socket.close()
  }

  #stop(error: Error): void {
    this.#waiter.fail(error)
    this.onStop(error)
  }

  #answered(reply: Reply): void {
    const isEnd = this.#isAskedForEnd && reply === this.#end
    if (isEnd === this.#lines.length > 0) this.#stop(mismatch())
    else if (isEnd) this.#hasEnded = true
    else this.#count(this.#lines.firstRecords, this.#lines.shift(), reply)
    if (this.#lines.length === 0 && this.#isAskedForEnd === this.#hasEnded) this.#socket.expect(false)
    this.#waiter.look()
  }

  #count(records: number, line: number, reply: Reply): void {
    const error = errorIn(reply)
    if (error === undefined) this.#tally.succeed(reply, records)
    else if (isServerTrouble(error)) this.#isInTrouble(line, error)
    else this.#tally.fail(line, error, records)
  }

  /** All records from this one on will be sent again, so that they do not count as failed. */
  #isInTrouble(line: number, error: string): void {
    this.#troubleLine ??= line
    this.#stop(stopped(`${addressOf(this.#socket.node)} takes no more: ${error.replace(/\.$/, '')}`))
  }
}

export const mismatch = (): Error => stopped('replies and commands do not match; some command has no reply, or several')
