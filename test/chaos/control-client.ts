/**
 * A client that is not under test. It pings one server all the time, the way the processes under test reach it, so that
 * their decisions are judged by how Redis really answered.
 */
import { type Address, type Connection, openConnection } from '../servers/resp.js'
import { nowUs } from './history.js'
import type { Observation } from './topology.js'

/** A reply that takes longer than this may be too late for a decision: its deadline is 100 ms, and it has to be made too. */
const slowUs = 80_000
const pauseMs = 10
const timeoutMs = 2_000

export class ControlClient {
  readonly #address: Address
  readonly #isUp: (connection: Connection) => Promise<boolean>
  #connection: Connection | undefined
  #isStopped = false
  #slow: Observation[] = []
  #waiting: { readonly since: number; readonly resolve: (at: number) => void }[] = []
  readonly #ended: Promise<void>

  /** `isUp` asks the server whether it can decide; a ping by default. */
  constructor(address: Address, isUp = async (connection: Connection) => (await connection.call('PING')) === 'PONG') {
    this.#address = address
    this.#isUp = isUp
    this.#ended = this.#run()
  }

  /** The instant at which a ping was answered that was sent after now. */
  answered(): Promise<number> {
    return new Promise((resolve) => this.#waiting.push({ since: nowUs(), resolve }))
  }

  /** When it was slow or failed, since the last call. */
  observations(): Observation[] {
    return this.#slow.splice(0)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#connection?.close()
    await this.#ended
  }

  async #run(): Promise<void> {
    let askedAt = nowUs()
    while (!this.#isStopped) {
      const sentAt = nowUs()
      const isAnswered = await this.#ping()
      const at = nowUs()
      if (isAnswered) {
        if (at - askedAt > slowUs)
          this.#slow.push({
            what: `no reply to the control client on port ${this.#address.port}`,
            from: askedAt,
            to: at,
          })
        for (const waiter of this.#waiting) if (waiter.since <= sentAt) waiter.resolve(at)
        this.#waiting = this.#waiting.filter((waiter) => waiter.since > sentAt)
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      // A failed ping is part of the same silence.
      if (isAnswered) askedAt = nowUs()
    }
  }

  async #ping(): Promise<boolean> {
    try {
      this.#connection ??= await openConnection(this.#address, timeoutMs)
      return await this.#isUp(this.#connection)
    } catch {
      this.#connection?.close()
      this.#connection = undefined
      return false
    }
  }
}
