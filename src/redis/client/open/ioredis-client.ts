import type { Cluster, Redis } from 'ioredis'
import { FluxGateError, messageOf } from '../../../core/errors.js'
import { ConnectionWait } from '../../../core/scheduling/connection-wait.js'
import { Deadlines } from '../../../core/scheduling/deadlines.js'
import type { RedisConnection } from '../connection.js'
import { connectionOf } from '../connection-of.js'
import { isMisconfigured, isUnwritten, NotConnectedError, reasonOf, withoutCommand, wrapRedisError } from '../errors.js'
import { mayBeMismatch, silentAttemptMs, transportMismatch } from '../transport-probe.js'
import { waitForConnection } from '../wait-for-connection.js'
import { prepareClusterNode } from './cluster-node.js'
import { clusterOptions, retryDelayMs, serverOptions, silenceMs } from './settings.js'
import { SilenceWatch } from './silence-watch.js'
import type { RedisTarget } from './target.js'

/** The part of ioredis that is used. */
export type Library = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>

const closeTimeoutMs = 250
const restartDelayMs = 100
/** After a lost connection, attempts follow at 0, 25 and 50 ms. A server that fails all of them counts as down. */
const maxAttempts = 3

/**
 * One ioredis client that connects at once and reconnects whenever the connection is lost. Calls wait for the outcome of the
 * first attempt. After a lost connection, calls wait for the new one, at most for their own deadline. Once reconnecting has
 * failed, calls fail immediately until the connection is back, so that they do not accumulate.
 */
export class OwnClient implements Required<RedisConnection> {
  readonly isCluster: boolean
  /** Resolves with the first connection. Rejects if only a configuration change can help. */
  readonly connected: Promise<void>
  readonly #target: RedisTarget
  readonly #replyMs: number
  readonly #deadlines: Deadlines
  readonly #silence: SilenceWatch
  readonly #outcome: Promise<void>
  #client: Redis | Cluster | undefined
  #connection: RedisConnection | undefined
  #hasOutcome = false
  #wasConnected = false
  /** True from the 'ready' event to the 'close' event. */
  #isUp = false
  /** Present between a lost connection and the outcome of reconnecting. */
  #reconnecting: ConnectionWait | undefined
  /** Until the next connection of a node of a cluster is closed. */
  #nodeClosing: ConnectionWait | undefined
  #failedAttempts = 0
  #isClosed = false
  /** True after the server rejected the connection (credentials, ACL), until the next attempt. */
  #isRejected = false
  #lastError: unknown
  /** Created once per error, because capturing a stack trace costs more than the rest of a decision. */
  #unreachable: NotConnectedError | undefined
  #restart: NodeJS.Timeout | undefined
  /** Until the first connection: fires if an attempt gets no response. */
  #silentAttempt: NodeJS.Timeout | undefined
  /** Set if a probe found that only one side uses TLS. */
  #mismatch: Error | undefined
  #isProbing = false
  /** True if an attempt has failed and its outcome depends on the running probe. */
  #awaitsProbe = false
  #resolveOutcome = (): void => {}
  #resolveConnected = (): void => {}
  #rejectConnected = (_reason: FluxGateError): void => {}

  /** `replyMs` is the time that callers wait for a reply. */
  constructor(target: RedisTarget, library: Promise<Library>, replyMs: number) {
    this.isCluster = target.kind === 'cluster'
    this.#target = target
    this.#replyMs = replyMs
    this.#deadlines = new Deadlines(silenceMs(replyMs))
    this.#silence = new SilenceWatch(this.#deadlines, (error) => this.#recordError(error))
    this.#outcome = new Promise((resolve) => {
      this.#resolveOutcome = resolve
    })
    this.connected = new Promise((resolve, reject) => {
      this.#resolveConnected = resolve
      this.#rejectConnected = reject
    })
    // Callers may ignore `connected`, so its rejection must not be unhandled.
    this.connected.catch(() => {})
    library.then((found) => this.#open(found)).catch((error: unknown) => this.#fail(error))
  }

  /** The error with which calls fail immediately; undefined if calls would be sent or would wait. */
  get unreachable(): unknown {
    if (this.isConnected) return undefined
    const isWaiting = !this.#hasOutcome || this.#reconnecting !== undefined || this.#isLost
    return isWaiting ? undefined : this.#noConnection()
  }

  /** True if the connection is lost and its 'close' event has not been handled yet. */
  get #isLost(): boolean {
    return this.#isUp && !this.isConnected && !this.#isClosed
  }

  /** Calls would be sent now. */
  get isConnected(): boolean {
    if (this.#isRejected || this.#isClosed || this.#mismatch !== undefined) return false
    return this.#client?.status === 'ready'
  }

  async call(key: string, command: readonly (string | Buffer)[], asBytes = false): Promise<unknown> {
    if (!this.#hasOutcome) await this.#outcome
    for (let attempt = 1; ; attempt++) {
      if (this.#reconnecting !== undefined || !this.isConnected) {
        if (this.#reconnecting !== undefined || this.#isLost) await this.#awaitReconnect().over
        if (!this.isConnected) throw this.#noConnection()
      }
      const silence = this.#deadlines.begin(() => this.#silence.ping(this.#nodes()))
      try {
        return await (this.#connection as RedisConnection).call(key, command, asBytes)
      } catch (error) {
        // Several nodes of a cluster may close their connections at the same time, so one wait may not be enough.
        if (!isUnwritten(error) || attempt > this.#nodes().length) throw error
      } finally {
        this.#deadlines.end(silence)
      }
      // The socket was closed already, and its 'close' event follows: the command waits for the next connection.
      await this.#closing().over
    }
  }

  async subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onGap?: () => void,
  ): Promise<() => Promise<void>> {
    if (!this.#hasOutcome) await this.#outcome
    if (!this.isConnected) throw this.#noConnection()
    return (this.#connection as RedisConnection).subscribe(channel, onMessage, onGap)
  }

  ready(withinMs: number): Promise<void> {
    return waitForConnection(this.connected, withinMs)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#connection?.close()
    clearTimeout(this.#restart)
    clearTimeout(this.#silentAttempt)
    this.#settleOutcome()
    this.#reconnecting?.end()
    this.#resolveConnected()
    const client = this.#client
    if (client === undefined) return
    const isIdle = ['wait', 'reconnecting', 'close', 'end'].includes(client.status)
    const ended = isIdle ? undefined : eventOf(client, 'end', closeTimeoutMs)
    client.disconnect()
    await ended
  }

  #open(library: Library): void {
    if (this.#isClosed) return
    const target = this.#target
    const retry = (attempt: number): number => retryDelayMs(attempt, this.#isRejected)
    const client =
      target.kind === 'cluster'
        ? new library.Cluster([...target.nodes], clusterOptions(target, retry))
        : new library.Redis(serverOptions(target, retry))
    this.#client = client
    this.#connection = connectionOf(client)
    const events: NodeJS.EventEmitter = client
    events.on('connect', () => {
      this.#isRejected = false
    })
    events.on('ready', () => this.#verify(client))
    events.on('error', (error: Error) => this.#failed(rootOf(error, this.#lastError)))
    events.on('close', () => this.#closed())
    events.on('end', () => this.#scheduleRestart(client))
    // Errors of a single node or sentinel; others may still work.
    events.on('node error', (error: Error) => this.#recordError(error))
    events.on('sentinelError', (error: Error) => this.#recordError(sentinelProblem(error)))
    events.on('+node', (node: Redis) => {
      this.#silence.watchHandshake(node)
      prepareClusterNode(node, () => this.#nodeClosing?.end())
    })
    if (target.kind !== 'cluster') this.#silence.watchHandshake(client as Redis)
    // A server without TLS never completes the handshake. The probe detects that before the attempt times out.
    if (target.tls !== undefined) this.#silentAttempt = setTimeout(() => this.#probe(false), silentAttemptMs)
  }

  /** Pings on the first connection, because only a reply shows that the server accepts the credentials. */
  #verify(client: Redis | Cluster): void {
    if (this.#isRejected) {
      client.disconnect(true)
      return
    }
    this.#lastError = undefined
    this.#unreachable = undefined
    if (this.#wasConnected) this.#connected()
    else
      client.ping().then(
        () => this.#connected(),
        (error: Error) => {
          // A server that closes the connection instead of replying, such as a TLS server, has not accepted it.
          if (client.status !== 'ready') return
          if (!isMisconfigured(error) || error.message.startsWith('NOPERM')) return this.#connected()
          this.#failed(error)
          client.disconnect(true)
        },
      )
  }

  #connected(): void {
    this.#wasConnected = true
    this.#mismatch = undefined
    clearTimeout(this.#silentAttempt)
    this.#isUp = true
    this.#reconnecting?.end()
    this.#resolveConnected()
    this.#settleOutcome()
  }

  #recordError(error: unknown): void {
    if (isVague(error) && this.#lastError !== undefined) return
    this.#lastError = withoutCommand(error)
    this.#unreachable = undefined
  }

  /** Handles a failed attempt. A TLS mismatch found by a probe takes precedence over an ambiguous error. */
  #failed(error: unknown): void {
    const isAmbiguous = !this.#wasConnected && mayBeMismatch(error)
    if (!isAmbiguous) this.#mismatch = undefined
    if (isAmbiguous && this.#mismatch === undefined) {
      this.#recordError(error)
      this.#probe(true)
    } else this.#fail(this.#mismatch ?? error)
  }

  /**
   * Before the first connection: detects whether only one side uses TLS. `hasFailed` means that an attempt has failed and that
   * the probe determines its outcome.
   */
  #probe(hasFailed: boolean): void {
    if (this.#wasConnected || this.#isClosed) return
    this.#awaitsProbe ||= hasFailed
    if (this.#isProbing) return
    this.#isProbing = true
    const { tls } = this.#target
    const nodes = this.#target.kind === 'server' ? [this.#target.node] : this.#target.nodes
    void transportMismatch(nodes, tls !== undefined).then((mismatch) => {
      this.#isProbing = false
      if (this.#wasConnected || this.#isClosed) return
      this.#mismatch = mismatch
      if (mismatch !== undefined) this.#fail(mismatch)
      else if (this.#awaitsProbe) this.#settleOutcome()
      this.#awaitsProbe = false
    })
  }

  #fail(error: unknown): void {
    this.#recordError(error)
    this.#isRejected = isMisconfigured(error)
    if (this.#isRejected) {
      this.#rejectConnected(wrapRedisError(error, `connect to Redis at ${this.#target.where}`))
      this.#reconnecting?.end()
    }
    this.#settleOutcome()
  }

  /** Handles a lost connection or a failed attempt. */
  #closed(): void {
    if (!this.#wasConnected && mayBeMismatch(this.#lastError)) this.#probe(true)
    else this.#settleOutcome()
    if (this.#isLost) this.#awaitReconnect()
    else if (++this.#failedAttempts === maxAttempts) this.#reconnecting?.end()
    this.#isUp = false
  }

  /**
   * Makes calls wait for the next connection. The wait is twice as long as callers wait for a reply: a call that starts late
   * in the first half must not fail before its own deadline. Reconnecting through a sentinel takes several round trips.
   */
  #awaitReconnect(): ConnectionWait {
    if (this.#reconnecting !== undefined) return this.#reconnecting
    const reconnecting = new ConnectionWait(2 * this.#replyMs)
    this.#failedAttempts = 0
    this.#reconnecting = reconnecting
    void reconnecting.over.then(() => {
      this.#reconnecting = undefined
    })
    return reconnecting
  }

  /** Ends when a command that found its socket closed can be sent, or queued by ioredis until the node is connected. */
  #closing(): ConnectionWait {
    if (this.#target.kind !== 'cluster') return this.#awaitReconnect()
    if (this.#nodeClosing === undefined || this.#nodeClosing.isOver)
      this.#nodeClosing = new ConnectionWait(this.#replyMs)
    return this.#nodeClosing
  }

  #nodes(): readonly Redis[] {
    const client = this.#client
    if (client === undefined) return []
    return 'nodes' in client ? client.nodes('master') : [client]
  }

  #settleOutcome(): void {
    this.#hasOutcome = true
    this.#resolveOutcome()
  }

  /** ioredis stops for good if a connection cannot even be started. Connects again, because the cause may be temporary. */
  #scheduleRestart(client: Redis | Cluster): void {
    if (this.#isClosed) return
    clearTimeout(this.#restart)
    this.#restart = setTimeout(() => client.connect().catch(() => {}), restartDelayMs)
  }

  #noConnection(): unknown {
    if (this.#isClosed) return new FluxGateError('FLUXGATE_CLOSED', 'The connection to Redis is closed.')
    if (this.#mismatch !== undefined) return this.#mismatch
    if (isMisconfigured(this.#lastError)) return this.#lastError
    this.#unreachable ??= notConnected(this.#target, this.#lastError, this.#wasConnected)
    return this.#unreachable
  }
}

function notConnected({ where, tls }: RedisTarget, cause: unknown, wasConnected: boolean): NotConnectedError {
  // A server without TLS does not answer a TLS handshake, so the attempt only times out.
  const hint = tls && !wasConnected ? '; check that the server uses TLS' : ''
  const reason = cause === undefined ? '' : ` (${reasonOf(cause)}${hint})`
  return new NotConnectedError(`not connected to Redis at ${where}${reason}`, { cause })
}

function eventOf(emitter: NodeJS.EventEmitter, name: string, withinMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, withinMs)
    emitter.once(name, () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** The error of the last node or sentinel, which is more specific than "all nodes failed". */
function rootOf(error: Error, last: unknown): unknown {
  if ('lastNodeError' in error) return error.lastNodeError ?? error
  if (!error.message.startsWith('All sentinels are unreachable')) return error
  return last === undefined || isVague(last) ? error : last
}

/** A generic error that ioredis emits after the actual one. */
const isVague = (error: unknown): boolean => messageOf(error) === 'Connection is closed.'

/** The reason of a sentinel error, without the address of the sentinel. */
function sentinelProblem(error: Error): Error {
  const [, reason] = / because (.*)$/s.exec(error.message) ?? []
  return reason === undefined ? error : new Error(reason, { cause: error })
}
