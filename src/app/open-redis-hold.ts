import { type Deadline, Deadlines } from '../core/deadlines.js'

/** Attempts follow each other after 0, 25 and 50 ms: a server that rejects all of them is down. */
const maxAttempts = 3

/**
 * Makes calls wait for the connection that replaces a lost one. It ends with the new connection, when reconnecting has
 * failed, or when the calls' own deadline has passed since the loss.
 */
export class ReconnectHold {
  readonly over: Promise<void>
  readonly #deadlines: Deadlines
  readonly #deadline: Deadline
  #failed = 0
  #resolve = (): void => {}

  constructor(withinMs: number) {
    this.over = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#deadlines = new Deadlines(withinMs)
    this.#deadline = this.#deadlines.begin(() => this.#resolve())
  }

  attemptFailed(): void {
    this.#failed += 1
    if (this.#failed === maxAttempts) this.end()
  }

  end(): void {
    this.#deadlines.end(this.#deadline)
    this.#resolve()
  }
}
