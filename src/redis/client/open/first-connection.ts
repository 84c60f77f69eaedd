import type { RedisConnection } from '../connection.js'

/**
 * The initial connection phase of a store. Decisions wait for its end, so that connecting does not count against their timeout.
 * It ends with the first connection, with an error that only a configuration change can fix, or after `withinMs`.
 */
export class Opening {
  readonly #connection: Pick<RedisConnection, 'ready' | 'isConnected'>
  readonly #withinMs: number
  #over: Promise<void> | undefined
  #isOver: boolean

  constructor(connection: Pick<RedisConnection, 'ready' | 'isConnected'>, withinMs: number) {
    this.#connection = connection
    this.#withinMs = withinMs
    this.#isOver = connection.ready === undefined
  }

  get isOver(): boolean {
    if (!this.#isOver && this.#connection.isConnected) this.#isOver = true
    return this.#isOver
  }

  /** Resolves when the phase is over. `withinMs` starts with the first call. */
  over(): Promise<void> {
    this.#over ??= this.#wait()
    return this.#over
  }

  async #wait(): Promise<void> {
    // The error is ignored, because the store call that follows reports it.
    await this.#connection.ready?.(this.#withinMs).catch(() => {})
    this.#isOver = true
  }
}
