import type { Redis } from 'ioredis'
import { type Deadline, Deadlines } from '../../../core/scheduling/deadlines.js'

/**
 * Finds dead connections: a call without a reply for `silenceMs` has every node pinged, and a node that does not reply to
 * that for as long again is disconnected, so that the client connects anew. Handshakes have the same limit.
 *
 * ioredis's own `socketTimeout` cannot be used for this: after a stall of the event loop it closes the connection before the
 * replies that have arrived meanwhile are read.
 */
export class SilenceWatch {
  readonly #deadlines: Deadlines
  readonly #onDead: (error: Error) => void
  readonly #pinged = new WeakSet<Redis>()

  constructor(silenceMs: number, onDead: (error: Error) => void) {
    this.#deadlines = new Deadlines(silenceMs)
    this.#onDead = onDead
  }

  /** Passes the reply on. `nodes` are those that may owe it. */
  async watch<T>(reply: Promise<T>, nodes: () => readonly Redis[]): Promise<T> {
    const deadline = this.#deadlines.begin(() => {
      for (const node of nodes()) this.#ping(node)
    })
    try {
      return await reply
    } finally {
      this.#deadlines.end(deadline)
    }
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
