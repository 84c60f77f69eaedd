import type { Cluster, Redis } from 'ioredis'
import { FluxGateError, messageOf } from '../core/errors.js'
import { Hold } from '../core/hold.js'
import type { RedisConnection } from '../redis/connection.js'
import {
  isMisconfigured,
  isUnwritten,
  NotConnectedError,
  reasonOf,
  withoutCommand,
  wrapRedisError,
} from '../redis/connection-errors.js'
import { connectionOf } from '../redis/connection-of.js'
import { mayBeMismatch, silentAttemptMs, transportMismatch } from '../redis/transport-probe.js'
import { prepareClusterNode } from './cluster-node.js'
import { clusterOptions, retryDelayMs, serverOptions, silenceMs } from './open-redis-settings.js'
import type { RedisTarget } from './open-redis-target.js'
import { SilenceWatch } from './open-redis-watch.js'

/** As much of ioredis as is used here. */
export type Library = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>

const longestCloseMs = 250
const revivalMs = 100
/** After a loss, attempts follow each other after 0, 25 and 50 ms: a server that fails all of them is down. */
const maxAttempts = 3

/**
 * One ioredis client, which connects at once and reconnects whenever the connection is lost. Calls wait for the outcome of
 * the first attempt. Calls made after a loss wait for the new connection, for no longer than their own deadline. Once
 * reconnecting has failed, calls fail at once until there is a connection, so that nothing piles up.
 */
export class OwnClient {
  /** Resolves when connected for the first time; rejects when it is known that waiting will not help. */
  readonly connected: Promise<void>
  readonly #target: RedisTarget
  readonly #replyMs: number
  readonly #silence: SilenceWatch
  readonly #outcome: Promise<void>
  #client: Redis | Cluster | undefined
  #connection: RedisConnection | undefined
  #hasOutcome = false
  #wasConnected = false
  /** Connected, as far as is known: true from 'ready' to 'close'. */
  #isUp = false
  /** Between the loss of a connection and the outcome of reconnecting. */
  #hold: Hold | undefined
  /** Until the next connection of a node of a cluster is closed. */
  #nodeClosing: Hold | undefined
  #failedAttempts = 0
  #isClosed = false
  /** The server is there and does not let us in; until the next attempt. */
  #isRefused = false
  #trouble: unknown
  /** Made once for each trouble: capturing a stack trace would cost more than the rest of a decision. */
  #unreachable: NotConnectedError | undefined
  #revival: NodeJS.Timeout | undefined
  /** Until the first connection: runs while an attempt gets no answer at all. */
  #silentAttempt: NodeJS.Timeout | undefined
  /** Only one side uses TLS, as far as is known. */
  #mismatch: Error | undefined
  #isProbing = false
  /** The attempt that is probed for has failed. */
  #awaitsProbe = false
  #settle = (): void => {}
  #succeed = (): void => {}
  #giveUp = (_reason: FluxGateError): void => {}

  /** `replyMs`: how long those who call wait for a reply. */
  constructor(target: RedisTarget, library: Promise<Library>, replyMs: number) {
    this.#target = target
    this.#replyMs = replyMs
    this.#silence = new SilenceWatch(silenceMs(replyMs), (error) => this.#note(error))
    this.#outcome = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.connected = new Promise((resolve, reject) => {
      this.#succeed = resolve
      this.#giveUp = reject
    })
    // Whoever is interested asks `connected`; nobody has to.
    this.connected.catch(() => {})
    library.then((found) => this.#open(found)).catch((error: unknown) => this.#fail(error))
  }

  /** The error that calls fail with at once while there is no connection; undefined if they would wait or be sent. */
  get unreachable(): unknown {
    if (this.isUsable) return undefined
    const isWaiting = !this.#hasOutcome || this.#hold !== undefined || this.#isLost
    return isWaiting ? undefined : this.#noConnection()
  }

  /** The connection is gone, and its 'close' event has not been handled yet. */
  get #isLost(): boolean {
    return this.#isUp && !this.isUsable && !this.#isClosed
  }

  get isUsable(): boolean {
    if (this.#isRefused || this.#isClosed || this.#mismatch !== undefined) return false
    return this.#client?.status === 'ready'
  }

  async call(key: string, command: readonly (string | Buffer)[], asBytes = false): Promise<unknown> {
    if (!this.#hasOutcome) await this.#outcome
    for (let attempt = 1; ; attempt++) {
      if (this.#hold !== undefined || this.#isLost) await this.#lose().over
      const connection = this.#usable()
      try {
        return await this.#silence.watch(connection.call(key, command, asBytes), () => this.#nodes())
      } catch (error) {
        // Several nodes of a cluster may be closing their connections, and the one that is waited for may be another one.
        if (!isUnwritten(error) || attempt > this.#nodes().length) throw error
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
    return this.#usable().subscribe(channel, onMessage, onGap)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#connection?.close()
    clearTimeout(this.#revival)
    clearTimeout(this.#silentAttempt)
    this.#decide()
    this.#hold?.end()
    this.#succeed()
    const client = this.#client
    if (client === undefined) return
    const isIdle = ['wait', 'reconnecting', 'close', 'end'].includes(client.status)
    const ended = isIdle ? undefined : eventOf(client, 'end', longestCloseMs)
    client.disconnect()
    await ended
  }

  #open(library: Library): void {
    if (this.#isClosed) return
    const target = this.#target
    const retry = (attempt: number): number => retryDelayMs(attempt, this.#isRefused)
    const client =
      target.kind === 'cluster'
        ? new library.Cluster([...target.nodes], clusterOptions(target, retry))
        : new library.Redis(serverOptions(target, retry))
    this.#client = client
    this.#connection = connectionOf(client)
    const events: NodeJS.EventEmitter = client
    events.on('connect', () => {
      this.#isRefused = false
    })
    events.on('ready', () => this.#greet(client))
    events.on('error', (error: Error) => this.#failed(rootOf(error, this.#trouble)))
    events.on('close', () => this.#closed())
    events.on('end', () => this.#revive(client))
    // Of one node, or one sentinel, while others may be fine.
    events.on('node error', (error: Error) => this.#note(error))
    events.on('sentinelError', (error: Error) => this.#note(sentinelProblem(error)))
    events.on('+node', (node: Redis) => {
      this.#silence.watchHandshake(node)
      prepareClusterNode(node, () => this.#nodeClosing?.end())
    })
    if (target.kind !== 'cluster') this.#silence.watchHandshake(client as Redis)
    // The answer that TLS waits for never comes: no need to wait for the timeout of the attempt.
    if (target.tls !== undefined) this.#silentAttempt = setTimeout(() => this.#probe(false), silentAttemptMs)
  }

  /** The first connection is pinged: only a reply shows that the server accepts our credentials. */
  #greet(client: Redis | Cluster): void {
    if (this.#isRefused) {
      client.disconnect(true)
      return
    }
    this.#trouble = undefined
    this.#unreachable = undefined
    if (this.#wasConnected) this.#welcome()
    else
      client.ping().then(
        () => this.#welcome(),
        (error: Error) => {
          // A server that closes the connection in place of a reply, as one with TLS does, has not accepted it.
          if (client.status !== 'ready') return
          if (!isMisconfigured(error) || error.message.startsWith('NOPERM')) return this.#welcome()
          this.#failed(error)
          client.disconnect(true)
        },
      )
  }

  #welcome(): void {
    this.#wasConnected = true
    this.#mismatch = undefined
    clearTimeout(this.#silentAttempt)
    this.#isUp = true
    this.#hold?.end()
    this.#succeed()
    this.#decide()
  }

  #note(error: unknown): void {
    if (isVague(error) && this.#trouble !== undefined) return
    this.#trouble = withoutCommand(error)
    this.#unreachable = undefined
  }

  /** An attempt has failed. If that is all that is known, the reason found by probing stays. */
  #failed(error: unknown): void {
    const isAmbiguous = !this.#wasConnected && mayBeMismatch(error)
    if (!isAmbiguous) this.#mismatch = undefined
    if (isAmbiguous && this.#mismatch === undefined) {
      this.#note(error)
      this.#probe(true)
    } else this.#fail(this.#mismatch ?? error)
  }

  /**
   * Until the first connection: finds out whether the server uses TLS if this client does not, or the other way round.
   * `hasFailed`: the attempt has failed, and what it comes to is known after the probe.
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
      else if (this.#awaitsProbe) this.#decide()
      this.#awaitsProbe = false
    })
  }

  #fail(error: unknown): void {
    this.#note(error)
    this.#isRefused = isMisconfigured(error)
    if (this.#isRefused) {
      this.#giveUp(wrapRedisError(error, `connect to Redis at ${this.#target.where}`))
      this.#hold?.end()
    }
    this.#decide()
  }

  /** A connection was lost, or an attempt to connect has failed. */
  #closed(): void {
    if (!this.#wasConnected && mayBeMismatch(this.#trouble)) this.#probe(true)
    else this.#decide()
    if (this.#isLost) this.#lose()
    else if (++this.#failedAttempts === maxAttempts) this.#hold?.end()
    this.#isUp = false
  }

  /** From now on calls wait for the next connection. */
  #lose(): Hold {
    if (this.#hold !== undefined) return this.#hold
    const hold = new Hold(this.#replyMs)
    this.#failedAttempts = 0
    this.#hold = hold
    void hold.over.then(() => {
      this.#hold = undefined
    })
    return hold
  }

  /** Ends when a command that found its socket closed can be sent, or queued by ioredis until the node is connected. */
  #closing(): Hold {
    if (this.#target.kind !== 'cluster') return this.#lose()
    if (this.#nodeClosing === undefined || this.#nodeClosing.isOver) this.#nodeClosing = new Hold(this.#replyMs)
    return this.#nodeClosing
  }

  #nodes(): readonly Redis[] {
    const client = this.#client
    if (client === undefined) return []
    return 'nodes' in client ? client.nodes('master') : [client]
  }

  #usable(): RedisConnection {
    if (this.#connection === undefined || !this.isUsable) throw this.#noConnection()
    return this.#connection
  }

  #decide(): void {
    this.#hasOutcome = true
    this.#settle()
  }

  /** ioredis gives up for good where a connection cannot even be begun; what it is told to reach may change. */
  #revive(client: Redis | Cluster): void {
    if (this.#isClosed) return
    clearTimeout(this.#revival)
    this.#revival = setTimeout(() => client.connect().catch(() => {}), revivalMs)
  }

  #noConnection(): unknown {
    if (this.#isClosed) return new FluxGateError('FLUXGATE_CLOSED', 'The connection to Redis was closed.')
    if (this.#mismatch !== undefined) return this.#mismatch
    if (isMisconfigured(this.#trouble)) return this.#trouble
    this.#unreachable ??= notConnected(this.#target, this.#trouble, this.#wasConnected)
    return this.#unreachable
  }
}

function notConnected({ where, tls }: RedisTarget, cause: unknown, wasConnected: boolean): NotConnectedError {
  // A server without TLS waits in silence for the end of what it takes for a command.
  const hint = tls && !wasConnected ? '; does it speak TLS?' : ''
  const reason = cause === undefined ? '' : ` (${reasonOf(cause)}${hint})`
  return new NotConnectedError(`there is no connection to Redis at ${where}${reason}`, { cause })
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

/** That all nodes or all sentinels have failed is less than what the last of them had to say. */
function rootOf(error: Error, last: unknown): unknown {
  if ('lastNodeError' in error) return error.lastNodeError ?? error
  if (!error.message.startsWith('All sentinels are unreachable')) return error
  return last === undefined || isVague(last) ? error : last
}

/** It follows an error that says more, or there is none. */
const isVague = (error: unknown): boolean => messageOf(error) === 'Connection is closed.'

/** What one sentinel had to say, without who it was. */
function sentinelProblem(error: Error): Error {
  const [, reason] = / because (.*)$/s.exec(error.message) ?? []
  return reason === undefined ? error : new Error(reason, { cause: error })
}
