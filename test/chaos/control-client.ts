/**
 * A client that is not under test. It asks one server all the time, the way the processes under test reach it, so that
 * their decisions are judged by how Redis really answered.
 */
import { type Address, type Connection, openConnection, type Reply } from '../servers/resp.js'
import { LoopTimes, nowUs } from './history.js'
import type { Observation } from './topology.js'

/** A reply that takes longer than this may be too late for a decision: its deadline is 100 ms, and it has to be made too. */
const slowUs = 80_000
const pauseMs = 10
const idlePauseMs = 50
const timeoutMs = 2_000
/** A client that has had this many turns without a reply was not merely kept from reading it. */
const turnsWithoutReply = 3

export interface ControlOptions {
  /** Called with each reply to `ROLE`, and the time of the reply before it. */
  readonly onRole?: (role: Reply, before: number, at: number) => void
  /** Whether the processes under test depend on this server. */
  readonly isNeeded?: () => boolean
  /** The traffic of the processes under test passes through this process, so that its pauses are theirs too. */
  readonly isProxied?: boolean
}

export class ControlClient {
  readonly #address: Address
  readonly #options: ControlOptions
  #connection: Connection | undefined
  #isStopped = false
  #slow: Observation[] = []
  #waiting: { readonly since: number; readonly resolve: (at: number) => void }[] = []
  readonly #ended: Promise<void>

  constructor(address: Address, options: ControlOptions = {}) {
    this.#address = address
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
    this.#connection?.close()
    await this.#ended
  }

  async #run(): Promise<void> {
    const { onRole, isNeeded = () => true, isProxied = false } = this.#options
    let turns = 0
    const counting = setInterval(() => turns++, LoopTimes.sliceMs)
    let askedAt = nowUs()
    let repliedAt = askedAt
    while (!this.#isStopped) {
      const sentAt = nowUs()
      const role = await this.#askRole()
      const at = nowUs()
      if (role !== undefined) {
        // Before the role is passed on: a server that has just been replaced was needed until then.
        if (at - askedAt > slowUs && isNeeded() && (isProxied || turns >= turnsWithoutReply)) {
          const what = `no reply to the control client on port ${this.#address.port}`
          this.#slow.push({ what, from: askedAt, to: at })
        }
        onRole?.(role, repliedAt, at)
        repliedAt = at
        for (const waiter of this.#waiting) if (waiter.since <= sentAt) waiter.resolve(at)
        this.#waiting = this.#waiting.filter((waiter) => waiter.since > sentAt)
      }
      await new Promise((resolve) => setTimeout(resolve, isNeeded() ? pauseMs : idlePauseMs))
      // A failed question is part of the same silence.
      if (role === undefined) continue
      askedAt = nowUs()
      turns = 0
    }
    clearInterval(counting)
  }

  async #askRole(): Promise<Reply | undefined> {
    try {
      this.#connection ??= await openConnection(this.#address, timeoutMs)
      return await this.#connection.call('ROLE')
    } catch {
      this.#connection?.close()
      this.#connection = undefined
      return undefined
    }
  }
}
