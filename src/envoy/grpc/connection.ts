import type { ServerHttp2Session } from 'node:http2'
import type { Call } from './call.js'
import type { GrpcLimits } from './grpc-server.js'

/** Bounds how long a busy connection stays open. */
const maxTurns = 1_000

/** A connection of a client, with its calls. Closes when the client is silent, or when it has reached its maximum age. */
export class Connection {
  readonly #session: ServerHttp2Session
  readonly #limits: GrpcLimits
  readonly #openedAt = performance.now()
  readonly #calls = new Set<Call>()
  /** When it is closed because of its age. */
  readonly #endsAt: number
  /** True once the client has sent its first frame. */
  #hasStarted = false
  /** When the last ping was sent that has not been answered. */
  #pingedAt: number | undefined
  /** When the last call began, or a ping was answered. */
  #lastHeardAt = this.#openedAt
  #isClosing = false
  /** Waits for a moment without calls. */
  #timer: NodeJS.Timeout | undefined

  constructor(session: ServerHttp2Session, limits: GrpcLimits) {
    this.#session = session
    this.#limits = limits
    const { maxConnectionAgeMs: ageMs } = limits
    this.#endsAt = ageMs === 0 ? Number.POSITIVE_INFINITY : this.#openedAt + ageMs * (0.9 + 0.2 * Math.random())
    session.once('remoteSettings', () => {
      this.#hasStarted = true
    })
    session.once('close', () => clearTimeout(this.#timer))
    // The client has violated the protocol or left. Node closes the connection.
    session.on('error', () => {})
  }

  add(call: Call, now: number): void {
    this.#calls.add(call)
    this.#lastHeardAt = now
  }

  remove(call: Call): void {
    this.#calls.delete(call)
  }

  destroy(): void {
    this.#session.destroy()
  }

  /** Ends calls that take too long, and closes the connection if it is due. */
  check(now: number): void {
    const { callMs, handshakeMs, keepAliveMs, graceMs } = this.#limits
    for (const call of this.#calls) if (call.waitsSince !== undefined && now - call.waitsSince >= callMs) call.expire()
    const isSilent = this.#pingedAt !== undefined && now - this.#pingedAt >= keepAliveMs
    const isLate = !this.#hasStarted && now - this.#openedAt >= handshakeMs
    if (isLate || isSilent || now >= this.#endsAt + graceMs) this.destroy()
    else if (now >= this.#endsAt) this.closeGracefully()
    else if (this.#pingedAt === undefined && now - this.#lastHeardAt >= keepAliveMs) this.#ping(now)
  }

  /**
   * Asks the client to send no more calls, and closes the connection when those in flight have ended. Calls that arrive after
   * GOAWAY are refused: Node cannot announce it in advance. Therefore GOAWAY is sent when no call has begun for `quietMs`, at
   * the latest after `maxQuietWaitMs`.
   */
  closeGracefully(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#closeWhenQuiet(performance.now() + this.#limits.maxQuietWaitMs)
  }

  #closeWhenQuiet(deadline: number): void {
    const now = performance.now()
    const leftMs = Math.min(deadline, this.#lastHeardAt + this.#limits.quietMs) - now
    if (leftMs > 0) this.#timer = setTimeout(() => this.#closeWhenQuiet(deadline), leftMs)
    else this.#closeWhenRead(maxTurns)
  }

  /** Calls that have arrived but are not read yet would be refused, so the last turn of the event loop must have read none. */
  #closeWhenRead(turns: number): void {
    const before = this.#lastHeardAt
    setImmediate(() => {
      if (this.#session.destroyed) return
      if (turns > 0 && this.#lastHeardAt !== before) this.#closeWhenRead(turns - 1)
      else this.#session.close()
    })
  }

  #ping(now: number): void {
    this.#pingedAt = now
    this.#session.ping((error) => {
      if (error !== null) return
      this.#pingedAt = undefined
      this.#lastHeardAt = performance.now()
    })
  }
}
