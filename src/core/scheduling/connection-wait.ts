import { type Deadline, Deadlines } from './deadlines.js'

/** Makes calls wait for a connection, up to a timeout. Time during which the event loop is blocked does not count. */
export class ConnectionWait {
  /** Resolves when the wait ends, whether connected or timed out. */
  readonly over: Promise<void>
  readonly #deadlines: Deadlines
  readonly #deadline: Deadline
  #resolve = (): void => {}
  isOver = false

  constructor(withinMs: number) {
    this.over = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#deadlines = new Deadlines(withinMs)
    this.#deadline = this.#deadlines.begin(() => this.end())
  }

  end(): void {
    this.isOver = true
    this.#deadlines.end(this.#deadline)
    this.#resolve()
  }
}
