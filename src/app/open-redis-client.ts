import type { Cluster, Redis } from 'ioredis'
import { FluxGateError, messageOf } from '../core/errors.js'
import type { RedisConnection } from '../redis/connection.js'
import { isMisconfigured, reasonOf, withoutCommand, wrapRedisError } from '../redis/connection-errors.js'
import { connectionOf } from '../redis/connection-of.js'
import { clusterOptions, retryDelayMs, serverOptions } from './open-redis-settings.js'
import type { RedisTarget } from './open-redis-target.js'

/** As much of ioredis as is used here. */
export type Library = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>

const longestCloseMs = 250
const revivalMs = 100

/**
 * One client of our own, which connects at once, and again whenever it has to. Calls wait for the outcome of the first
 * attempt; after that they fail at once while there is no connection, so that nothing piles up.
 */
export class OwnClient {
  /** Resolves when connected for the first time; rejects when it is known that waiting will not help. */
  readonly connected: Promise<void>
  readonly #target: RedisTarget
  readonly #replyMs: number
  readonly #outcome: Promise<void>
  #client: Redis | Cluster | undefined
  #connection: RedisConnection | undefined
  #hasOutcome = false
  #wasConnected = false
  #isClosed = false
  /** The server is there and does not let us in; until the next attempt. */
  #isRefused = false
  #trouble: unknown
  #revival: NodeJS.Timeout | undefined
  #settle = (): void => {}
  #succeed = (): void => {}
  #giveUp = (_reason: FluxGateError): void => {}

  /** `replyMs`: how long those who call wait for a reply. */
  constructor(target: RedisTarget, library: Promise<Library>, replyMs: number) {
    this.#target = target
    this.#replyMs = replyMs
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

  get isUsable(): boolean {
    return this.#client?.status === 'ready' && !this.#isRefused && !this.#isClosed
  }

  async call(key: string, command: readonly (string | Buffer)[], asBytes = false): Promise<unknown> {
    if (!this.#hasOutcome) await this.#outcome
    if (!this.isUsable || this.#connection === undefined) throw this.#noConnection()
    return this.#connection.call(key, command, asBytes)
  }

  async subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onGap?: () => void,
  ): Promise<() => Promise<void>> {
    if (!this.#hasOutcome) await this.#outcome
    if (!this.isUsable || this.#connection === undefined) throw this.#noConnection()
    return this.#connection.subscribe(channel, onMessage, onGap)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#connection?.close()
    clearTimeout(this.#revival)
    this.#decide()
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
        ? new library.Cluster([...target.nodes], clusterOptions(target, retry, this.#replyMs))
        : new library.Redis(serverOptions(target, retry, this.#replyMs))
    this.#client = client
    this.#connection = connectionOf(client)
    const events: NodeJS.EventEmitter = client
    events.on('connect', () => {
      this.#isRefused = false
    })
    events.on('ready', () => this.#greet(client))
    events.on('error', (error: Error) => this.#fail(rootOf(error, this.#trouble)))
    events.on('close', () => this.#decide())
    events.on('end', () => this.#revive(client))
    // Of one node, or one sentinel, while others may be fine.
    events.on('node error', (error: Error) => this.#note(error))
    events.on('sentinelError', (error: Error) => this.#note(sentinelProblem(error)))
    // Nodes connect when they are needed, and then a request would wait for it.
    events.on('+node', (node: Redis) => {
      if (!node.options.readOnly && node.status === 'wait') node.connect().catch(() => {})
    })
  }

  /** The first time, a word is exchanged: only then is it known that we are let in. */
  #greet(client: Redis | Cluster): void {
    if (this.#isRefused) {
      client.disconnect(true)
      return
    }
    this.#trouble = undefined
    if (this.#wasConnected) return
    client.ping().then(
      () => this.#welcome(),
      (error: Error) => {
        if (!isMisconfigured(error) || error.message.startsWith('NOPERM')) return this.#welcome()
        this.#fail(error)
        client.disconnect(true)
      },
    )
  }

  #welcome(): void {
    this.#wasConnected = true
    this.#succeed()
    this.#decide()
  }

  #note(error: unknown): void {
    if (!isVague(error) || this.#trouble === undefined) this.#trouble = withoutCommand(error)
  }

  #fail(error: unknown): void {
    this.#note(error)
    this.#isRefused = isMisconfigured(error)
    if (this.#isRefused) this.#giveUp(wrapRedisError(error, `connect to Redis at ${this.#target.where}`))
    this.#decide()
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
    if (isMisconfigured(this.#trouble)) return this.#trouble
    // A server without TLS waits in silence for the end of what it takes for a command.
    const hint = this.#target.tls && !this.#wasConnected ? '; does it speak TLS?' : ''
    const reason = this.#trouble === undefined ? '' : ` (${reasonOf(this.#trouble)}${hint})`
    return unreachable(`there is no connection to Redis at ${this.#target.where}${reason}`, this.#trouble)
  }
}

const unreachable = (message: string, cause: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_STORE_UNREACHABLE', message, { cause })

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
