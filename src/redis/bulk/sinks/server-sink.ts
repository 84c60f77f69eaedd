import { randomUUID } from 'node:crypto'
import { nodeText } from '../../client/open/address.js'
import type { CommandWriter } from '../commands/writer.js'
import { LineQueue } from '../records/line-queue.js'
import { isServerFailure, stopped, type Tally } from '../tally.js'
import type { BulkSocket } from './bulk-socket.js'
import { errorIn, type Reply } from './reply-reader.js'
import { type BulkSink, Waiter } from './sink.js'

/** The size of one write. */
export const sendBytes = 48 * 1024

/**
 * Sends commands to one server, in the order of their records and with at most `maxOutstanding` outstanding replies. Replies are
 * matched to records by their order. The reply to a final ECHO of a random string must be the last one. Otherwise replies
 * and commands did not match, and the counts are not reliable.
 */
export class ServerSink implements BulkSink {
  onStop: (error: Error) => void = () => {}
  readonly #socket: BulkSocket
  readonly #out: CommandWriter
  readonly #tally: Tally
  readonly #maxOutstanding: number
  readonly #lines = new LineQueue()
  readonly #waiter = new Waiter()
  readonly #end = randomUUID()
  #isBlocked = false
  #isAskedForEnd = false
  #hasEnded = false
  #failedLine: number | undefined

  constructor(socket: BulkSocket, out: CommandWriter, tally: Tally, maxOutstanding: number) {
    this.#socket = socket
    this.#out = out
    this.#tally = tally
    this.#maxOutstanding = maxOutstanding
    socket.listen(
      (reply) => this.#answered(reply),
      (error) => this.#stop(stopped(`${nodeText(socket.node)}: ${error.message}`, error)),
    )
    socket.onDrain(() => {
      this.#isBlocked = false
      this.#waiter.recheck()
    })
  }

  get isFull(): boolean {
    return this.#lines.length >= this.#maxOutstanding || this.#out.length >= sendBytes
  }

  get unansweredLine(): number | undefined {
    return this.#failedLine ?? this.#lines.first
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
    if (!this.#isBlocked && this.#lines.length < this.#maxOutstanding) return undefined
    // Waits until half of the replies have arrived. Sending a few commands at a time would need one system call for each.
    return this.#waiter.until(() => !this.#isBlocked && this.#lines.length <= this.#maxOutstanding / 2)
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
    this.#waiter.recheck()
  }

  #count(records: number, line: number, reply: Reply): void {
    const error = errorIn(reply)
    if (error === undefined) this.#tally.succeed(reply, records)
    else if (isServerFailure(error)) this.#stopAt(line, error)
    else this.#tally.fail(line, error, records)
  }

  /** Stops the load. Records from this one on are not counted as failed, because a resumed load sends them again. */
  #stopAt(line: number, error: string): void {
    this.#failedLine ??= line
    this.#stop(stopped(`${nodeText(this.#socket.node)} rejects further commands: ${error.replace(/\.$/, '')}`))
  }
}

export const mismatch = (): Error =>
  stopped('replies do not match the commands; a command has no reply or more than one')
