/**
 * A client that is not under test. It asks one server all the time, the way the processes under test reach it, so that
 * their decisions are judged by how the server really answered.
 */
import { type Address, type Connection, openConnection, type Reply } from '../../servers/resp.js'
import { LoopTimes, nowUs } from '../history.js'
import type { Observation } from '../topologies/topology.js'

/** A reply that takes longer than this may be too late for a decision: its deadline is 100 ms, and it has to be made too. */
const slowUs = 80_000
const pauseMs = 10
const idlePauseMs = 50
/** A client that has had this many turns without a reply was not merely kept from reading it. */
const turnsWithoutReply = 3

export interface ControlOptions<T> {
  /** Describes the command in reports. */
  readonly name: string
  /** Rejects or resolves with undefined if there is no reply. */
  readonly ask: () => Promise<T | undefined>
  /** Called with each reply, and the time of the reply before it. */
  readonly onReply?: (reply: T, before: number, at: number) => void
  /** Whether the processes under test depend on this server. */
  readonly isNeeded?: () => boolean
  /** The traffic of the processes under test passes through this process, so that its pauses are theirs too. */
  readonly isProxied?: boolean
}

export class ControlClient<T> {
  readonly #options: ControlOptions<T>
  #isStopped = false
  #slow: Observation[] = []
  #waiting: { readonly since: number; readonly resolve: (at: number) => void }[] = []
  readonly #ended: Promise<void>

  constructor(options: ControlOptions<T>) {
    this.#options = options
    this.#ended = this.#run()
  }

  /** The instant of the first reply to a question that was sent after now. */
  answered(): Promise<number> {
    return new Promise((resolve) => this.#waiting.push({ since: nowUs(), resolve }))
  }

  /** When the server was slow or failed, since the last call. */
  observations(): Observation[] {
    return this.#slow.splice(0)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#ended
  }

  async #run(): Promise<void> {
    const { name, ask, onReply, isNeeded = () => true, isProxied = false } = this.#options
    let turns = 0
    const counting = setInterval(() => turns++, LoopTimes.sliceMs)
    let askedAt = nowUs()
    let repliedAt = askedAt
    while (!this.#isStopped) {
      const sentAt = nowUs()
      const reply = await ask().catch(() => undefined)
      const at = nowUs()
      if (reply !== undefined) {
        // Before the reply is passed on: a server that has just been replaced was needed until then.
        if (at - askedAt > slowUs && isNeeded() && (isProxied || turns >= turnsWithoutReply))
          this.#slow.push({ what: `no reply to the control client from ${name}`, from: askedAt, to: at })
        onReply?.(reply, repliedAt, at)
        repliedAt = at
        for (const waiter of this.#waiting) if (waiter.since <= sentAt) waiter.resolve(at)
        this.#waiting = this.#waiting.filter((waiter) => waiter.since > sentAt)
      }
      await new Promise((resolve) => setTimeout(resolve, isNeeded() ? pauseMs : idlePauseMs))
      // A failed question is part of the same silence.
      if (reply === undefined) continue
      // The server may have been silent from here on, even if a busy machine extended the pause of this client.
      askedAt = Math.min(nowUs(), at + pauseMs * 1_000)
      turns = 0
    }
    clearInterval(counting)
  }
}

const timeoutMs = 2_000

/** Asks for the role of a Redis server, over one connection as long as it lasts. */
export function roleOf(address: Address): () => Promise<Reply> {
  let connection: Connection | undefined
  return async () => {
    try {
      connection ??= await openConnection(address, timeoutMs)
      return await connection.call('ROLE')
    } catch (error) {
      connection?.close()
      connection = undefined
      throw error
    }
  }
}
