import type { RedisConnection } from '../connection.js'

/**
 * The time until a store has its first connection. Decisions wait for its end, so that connecting never costs them their
 * deadline. It ends with the connection, when only a change of configuration can help, or after `withinMs`.
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

  /** Its time begins with the first call. */
  over(): Promise<void> {
    this.#over ??= this.#wait()
    return this.#over
  }

  async #wait(): Promise<void> {
    // The call itself reports what is wrong.
    await this.#connection.ready?.(this.#withinMs).catch(() => {})
    this.#isOver = true
  }
}
