import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { RedisNode } from '../../client/open/address.js'
import { mayBeMismatch, silentAttemptMs, transportMismatch } from '../../client/transport-probe.js'
import { type Command, encodeCommand } from '../commands/writer.js'
import { errorIn, type Reply, ReplyReader } from './reply-reader.js'

/** Credentials and transport, which are the same for all nodes of a cluster. */
export interface BulkAccess {
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly database?: number | undefined
  readonly tls?: ConnectionOptions | undefined
  /** The connection fails if an expected reply does not arrive for this time, in milliseconds. */
  readonly silenceMs: number
}

/**
 * A pipelined connection: many commands are sent before the first reply arrives. Replies have the order of the commands.
 * The connection never reconnects and never sends a command twice; `onEnd` reports its end.
 */
export class BulkSocket {
  readonly node: RedisNode
  readonly #socket: Socket
  readonly #reader = new ReplyReader((reply) => this.#onReply(reply))
  readonly #silenceMs: number
  #onReply: (reply: Reply) => void = () => {}
  #onEnd: (error: Error) => void = () => {}
  #end: Error | undefined

  private constructor(node: RedisNode, socket: Socket, silenceMs: number) {
    this.node = node
    this.#socket = socket
    this.#silenceMs = silenceMs
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error) => this.#ended(error))
    socket.on('close', () => this.#ended(new Error('the connection was closed')))
    socket.on('timeout', () => this.#ended(new Error(`no reply in ${silenceMs} ms`)))
  }

  /** Connects and authenticates. Rejects with the error of the server or the network. */
  static async open(node: RedisNode, access: BulkAccess): Promise<BulkSocket> {
    const { host, port } = node
    const name = /^[\d.]+$|:/.test(host) ? {} : { servername: host }
    const socket = access.tls ? connectTls({ host, port, ...name, ...access.tls }) : connectTcp({ host, port })
    const opened = new BulkSocket(node, socket, access.silenceMs)
    const isTls = access.tls !== undefined
    let silent: NodeJS.Timeout | undefined
    const mismatch = new Promise<never>((_, reject) => {
      const probe = async (): Promise<void> => {
        const found = await transportMismatch([node], isTls)
        if (found !== undefined) reject(found)
      }
      silent = setTimeout(probe, silentAttemptMs)
    })
    try {
      await Promise.race([opened.#greet(access), mismatch])
    } catch (error) {
      opened.close()
      throw (mayBeMismatch(error) && (await transportMismatch([node], isTls))) || error
    } finally {
      clearTimeout(silent)
    }
    return opened
  }

  async #greet({ username, password, database = 0 }: BulkAccess): Promise<void> {
    if (password !== undefined) {
      const user = username === undefined ? [] : [username]
      await this.ask(['AUTH', ...user, password])
    }
    if (database !== 0) await this.ask(['SELECT', String(database)])
    await this.ask(['PING'])
  }

  /** Sends one command and resolves with its reply. Rejects with the server's error. Requires that no reply is outstanding. */
  ask(command: Command): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#reader.wantsText = true
      this.#onReply = (reply) => {
        this.expect(false)
        const error = errorIn(reply)
        if (error === undefined) resolve(reply)
        else reject(new Error(error))
      }
      this.#onEnd = reject
      if (this.#end !== undefined) reject(this.#end)
      else {
        this.expect(true)
        this.#socket.write(encodeCommand(command))
      }
    })
  }

  /** Calls `onReply` for each later reply, in which only errors and numbers are decoded, and `onEnd` when the connection ends. */
  listen(onReply: (reply: Reply) => void, onEnd: (error: Error) => void): void {
    this.#reader.wantsText = false
    this.#onReply = onReply
    this.#onEnd = onEnd
    if (this.#end !== undefined) onEnd(this.#end)
  }

  /** Decodes the text of later replies. */
  listenClosely(): void {
    this.#reader.wantsText = true
  }

  /** Enables the reply timeout while a reply is expected. */
  expect(isExpected: boolean): void {
    this.#socket.setTimeout(isExpected ? this.#silenceMs : 0)
  }

  /** Returns false if the socket buffer is full. The `onDrain` listener is called when it has drained. */
  write(bytes: Buffer, onSent: () => void): boolean {
    return this.#socket.write(bytes, onSent)
  }

  onDrain(listener: () => void): void {
    this.#socket.on('drain', listener)
  }

  close(): void {
    this.#onEnd = () => {}
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.read(chunk)
    } catch (error) {
      this.#ended(error as Error)
    }
  }

  #ended(error: Error): void {
    if (this.#end !== undefined) return
    this.#end = error
    this.#socket.destroy()
    this.#onEnd(error)
  }
}
