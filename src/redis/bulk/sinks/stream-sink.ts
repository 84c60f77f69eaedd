import type { Writable } from 'node:stream'
import type { CommandWriter } from '../commands/writer.js'
import { stopped, type Tally } from '../tally.js'
import { sendBytes } from './server-sink.js'
import { type BulkSink, Waiter } from './sink.js'

/** Writes commands to a stream, such as for `redis-cli --pipe`. Without a stream, it discards them. */
export class StreamSink implements BulkSink {
  readonly unansweredLine = undefined
  onStop: (error: Error) => void = () => {}
  readonly #out: CommandWriter
  readonly #tally: Tally
  readonly #stream: Writable | undefined
  readonly #waiter = new Waiter()
  #isBlocked = false
  /** Records in the buffer. */
  #records = 0
  /** Writes that the stream has not confirmed. */
  #writes = 0

  constructor(out: CommandWriter, tally: Tally, stream?: Writable) {
    this.#out = out
    this.#tally = tally
    this.#stream = stream
    stream?.on('drain', this.#onDrain)
    stream?.on('error', this.#onError)
  }

  get isFull(): boolean {
    return this.#out.length >= sendBytes
  }

  put(): void {
    this.#records += this.#out.records
  }

  flush(): Promise<void> | undefined {
    if (this.#waiter.error !== undefined) return Promise.reject(this.#waiter.error)
    const bytes = this.#out.take()
    const records = this.#records
    this.#records = 0
    const written = (): void => {
      this.#out.recycle(bytes)
      this.#tally.done += records
    }
    if (this.#stream === undefined || bytes.length === 0) written()
    else {
      this.#writes += 1
      this.#isBlocked = !this.#stream.write(bytes, (error) => {
        this.#writes -= 1
        if (error) this.#onError(error)
        else written()
        this.#waiter.recheck()
      })
    }
    return this.#isBlocked ? this.#waiter.until(() => !this.#isBlocked) : undefined
  }

  /** Waits for the last write, which fails if the reader closed the output early. */
  async finish(): Promise<void> {
    await this.flush()
    await this.#waiter.until(() => this.#writes === 0)
  }

  close(): void {
    this.#stream?.off('drain', this.#onDrain)
    this.#stream?.off('error', this.#onError)
  }

  #stop(error: Error): void {
    this.#waiter.fail(error)
    this.onStop(error)
  }

  readonly #onDrain = (): void => {
    this.#isBlocked = false
    this.#waiter.recheck()
  }

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    const closed = `the output was closed after ${this.#tally.done} ${this.#tally.done === 1 ? 'command' : 'commands'}`
    this.#stop(stopped(error.code === 'EPIPE' ? closed : error.message, error))
  }
}
