/**
 * Watches which servers are primaries. A replica that becomes a primary without agreement of the old one may lack writes
 * that were acknowledged, and until the old one is demoted both may acknowledge more.
 */
import type { RedisServer } from '../../servers/redis-server.js'
import type { Reply } from '../../servers/resp.js'
import { ControlClient, roleOf } from '../processes/control-client.js'
import type { Observation } from './topology.js'

interface Promotion {
  readonly from: number
  /** The port of the primary that was replaced. */
  readonly replaced: number
  to: number
  isOver: boolean
}

export class PrimaryWatch {
  readonly #clients: readonly ControlClient<Reply>[]
  readonly #known = new Set<number>()
  readonly #primaries = new Set<number>()
  /** By the port of a replica, the port of its primary. */
  readonly #followed = new Map<number, number>()
  #promotions: Promotion[] = []
  #agreed = 0

  constructor(servers: readonly RedisServer[]) {
    this.#clients = servers.map(
      ({ address, port }) =>
        new ControlClient({
          name: `port ${port}`,
          ask: roleOf(address),
          onReply: (role, before, at) => this.#onRole(port, role, before, at),
          isNeeded: () => this.#primaries.has(port),
        }),
    )
  }

  /** Promotions during `change` lose nothing: the old primary stops before the new one starts. */
  async agreed<T>(change: () => Promise<T>): Promise<T> {
    this.#agreed++
    try {
      return await change()
    } finally {
      // The role after the change has to be seen before another promotion counts.
      await this.answered()
      this.#agreed--
    }
  }

  async answered(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.answered()))
  }

  observations(): Observation[] {
    const losses = this.#promotions.map(({ from, to, replaced }) => ({
      what: `the primary on port ${replaced} was replaced`,
      from,
      to,
      losesWrites: true,
    }))
    this.#promotions = []
    return [...losses, ...this.#clients.flatMap((client) => client.observations())]
  }

  async stop(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.stop()))
  }

  #onRole(port: number, reply: Reply, before: number, at: number): void {
    const [role, , primary] = Array.isArray(reply) ? reply : []
    const followed = this.#followed.get(port)
    if (role === 'slave') {
      this.#known.add(port)
      this.#followed.set(port, Number(primary))
      this.#primaries.delete(port)
      this.#extend(port, at, true)
      return
    }
    if (role !== 'master') return
    this.#extend(port, at, false)
    if (followed !== undefined) {
      this.#followed.delete(port)
      this.#primaries.delete(followed)
      if (this.#agreed === 0) this.#promotions.push({ from: before, to: at, replaced: followed, isOver: false })
    }
    // A restarted former primary replies as a primary until it is demoted, but is not needed.
    if (followed !== undefined || !this.#known.has(port)) this.#primaries.add(port)
    this.#known.add(port)
  }

  /**
   * The old primary takes writes until it is demoted. That includes one that was killed and started again: a client that
   * was sent to it before reaches it, and what it acknowledges is lost.
   */
  #extend(port: number, at: number, isOver: boolean): void {
    for (const promotion of this.#promotions) {
      if (promotion.replaced !== port || promotion.isOver) continue
      promotion.to = at
      promotion.isOver = isOver
    }
  }
}
