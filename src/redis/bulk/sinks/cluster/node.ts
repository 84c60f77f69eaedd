import { randomUUID } from 'node:crypto'
import { encodeCommand } from '../../commands/writer.js'
import type { BulkSocket } from '../bulk-socket.js'
import type { Reply } from '../reply-reader.js'
import { mismatch } from '../server-sink.js'
import { Waiter } from '../sink.js'

/** A command in flight. Its bytes are kept, because a redirection may require sending it to another node. */
export interface Sent {
  readonly line: number
  /** The number of records in the command. */
  readonly records: number
  readonly bytes: Buffer
  readonly redirections: number
}

export interface ClusterNodeEvents {
  onReply(sent: Sent, reply: Reply): void
  /** Called when the node may accept more commands. */
  onRoom(): void
  onEnd(error: Error): void
}

const asking = encodeCommand(['ASKING'])

/** One primary of a cluster, with its unsent and unanswered commands. */
export class ClusterNode {
  readonly unanswered: Sent[] = []
  readonly #events: ClusterNodeEvents
  readonly #waiter = new Waiter()
  #socket: BulkSocket | undefined
  #unsent: Buffer[] = []
  /** For each expected reply, in order: whether it belongs to an ASKING command, which is not a record. */
  readonly #isAsking: boolean[] = []
  #isFull = false
  #isClosed = false
  #end: string | undefined

  constructor(socket: Promise<BulkSocket>, events: ClusterNodeEvents) {
    this.#events = events
    socket.then(
      (opened) => this.#begin(opened),
      (error: Error) => this.#ended(error),
    )
  }

  /** True if nothing more should be sent, because there is no connection yet or the socket buffer is full. */
  get isBlocked(): boolean {
    return this.#isFull || this.#socket === undefined
  }

  add(sent: Sent, isAsking = false): void {
    if (isAsking) {
      this.#unsent.push(asking)
      this.#isAsking.push(true)
    }
    this.#unsent.push(sent.bytes)
    this.#isAsking.push(false)
    this.unanswered.push(sent)
  }

  send(): void {
    if (this.#socket === undefined || this.#unsent.length === 0) return
    const bytes = Buffer.concat(this.#unsent)
    this.#unsent = []
    this.#socket.expect(true)
    this.#isFull = !this.#socket.write(bytes, () => {})
  }

  /** Sends a final ECHO after all replies have arrived. Its reply must be the next one. */
  async finish(): Promise<void> {
    this.#end = randomUUID()
    this.#socket?.listenClosely()
    this.#unsent.push(encodeCommand(['ECHO', this.#end]))
    this.send()
    await this.#waiter.until(() => this.#end === undefined)
  }

  close(): void {
    this.#isClosed = true
    this.#socket?.close()
  }

  #begin(socket: BulkSocket): void {
    this.#socket = socket
    if (this.#isClosed) socket.close()
    socket.listen(
      (reply) => this.#answered(reply),
      (error) => this.#ended(error),
    )
    socket.onDrain(() => {
      this.#isFull = false
      this.#events.onRoom()
    })
    this.send()
    this.#events.onRoom()
  }

  #answered(reply: Reply): void {
    if (this.#isAsking.length === 0) this.#answeredLast(reply)
    else if (!this.#isAsking.shift()) {
      const sent = this.unanswered.shift() as Sent
      if (this.unanswered.length === 0) this.#socket?.expect(false)
      this.#events.onReply(sent, reply)
    }
  }

  #answeredLast(reply: Reply): void {
    if (this.#end === undefined || reply !== this.#end) this.#ended(mismatch())
    else {
      this.#end = undefined
      this.#socket?.expect(false)
      this.#waiter.recheck()
    }
  }

  #ended(error: Error): void {
    this.#waiter.fail(error)
    this.#events.onEnd(error)
  }
}
