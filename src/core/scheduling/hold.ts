import { type Deadline, Deadlines } from './deadlines.js'

/** Makes calls wait for a connection, for a limited time in which the event loop can run. */
export class Hold {
  /** Resolves when it ends, for whatever reason. */
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
