import type { Writable } from 'node:stream'
import type { CommandWriter } from './command-writer.js'
import { sendBytes } from './server-sink.js'
import { type BulkSink, Waiter } from './sink.js'
import { stopped, type Tally } from './tally.js'

/** No server: commands are written to a stream, such as for `redis-cli --pipe`; without a stream, nowhere. */
export class StreamSink implements BulkSink {
  readonly unansweredLine = undefined
  onStop: (error: Error) => void = () => {}
  readonly #out: CommandWriter
  readonly #tally: Tally
  readonly #stream: Writable | undefined
  readonly #waiter = new Waiter()
  #isBlocked = false

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
    this.#tally.done += this.#out.records
  }

  flush(): Promise<void> | undefined {
    if (this.#waiter.error !== undefined) return Promise.reject(this.#waiter.error)
    const bytes = this.#out.take()
    const sent = (): void => this.#out.recycle(bytes)
    if (this.#stream === undefined) sent()
    else if (bytes.length > 0) this.#isBlocked = !this.#stream.write(bytes, sent)
    return this.#isBlocked ? this.#waiter.until(() => !this.#isBlocked) : undefined
  }

  async finish(): Promise<void> {
    await this.flush()
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
    this.#waiter.look()
  }

  readonly #onError = (error: Error): void => this.#stop(stopped(error.message, error))
}
