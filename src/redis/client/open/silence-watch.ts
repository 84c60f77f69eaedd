import type { Redis } from 'ioredis'
import type { Deadline, Deadlines } from '../../../core/scheduling/deadlines.js'

/**
 * Detects dead connections. If a call gets no reply by its deadline, every node is pinged. A node that does not answer the ping
 * within the same time is disconnected, and the client reconnects. Handshakes have the same timeout.
 *
 * The `socketTimeout` of ioredis does not work here: after an event-loop stall, it closes the connection before replies that
 * have already arrived are read.
 */
export class SilenceWatch {
  readonly #deadlines: Deadlines
  readonly #onDead: (error: Error) => void
  readonly #pinged = new WeakSet<Redis>()

  constructor(deadlines: Deadlines, onDead: (error: Error) => void) {
    this.#deadlines = deadlines
    this.#onDead = onDead
  }

  /** Called when a reply is overdue. */
  ping(nodes: readonly Redis[]): void {
    for (const node of nodes) this.#ping(node)
  }

  watchHandshake(node: Redis): void {
    let handshake: Deadline | undefined
    const end = (): void => {
      if (handshake !== undefined) this.#deadlines.end(handshake)
    }
    node.on('connect', () => {
      handshake = this.#deadlines.begin(() => this.#drop(node))
    })
    node.on('ready', end)
    node.on('close', end)
  }

  #ping(node: Redis): void {
    if (node.status !== 'ready' || this.#pinged.has(node)) return
    this.#pinged.add(node)
    const deadline = this.#deadlines.begin(() => this.#drop(node))
    const end = (): void => {
      this.#deadlines.end(deadline)
      this.#pinged.delete(node)
    }
    node.ping().then(end, end)
  }

  #drop(node: Redis): void {
    this.#onDead(new Error('the server does not answer'))
    node.disconnect(true)
  }
}
