import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { type Deadline, Deadlines } from '../core/deadlines.js'

export interface HttpTarget {
  readonly host: string
  readonly port: number
  /** Undefined for plain HTTP. */
  readonly tls: ConnectionOptions | undefined
  /** How long the first connection is waited for. */
  readonly connectTimeoutMs: number
}

const retryMs = 50

/**
 * The time until a server has accepted the first connection. Checks wait for its end, so that a server that starts at the
 * same time does not count as an outage. It also ends after `connectTimeoutMs`, and with a server that fails the TLS
 * handshake: the check itself then reports what is wrong.
 */
export class HttpOpening {
  readonly #target: HttpTarget
  readonly #deadlines: Deadlines
  #deadline: Deadline | undefined
  #over: Promise<void> | undefined
  #end = (): void => {}
  #socket: Socket | undefined
  #retry: NodeJS.Timeout | undefined
  isOver = false

  constructor(target: HttpTarget) {
    this.#target = target
    this.#deadlines = new Deadlines(target.connectTimeoutMs)
  }

  /** Its time begins with the first call. */
  over(): Promise<void> {
    this.#over ??= new Promise((resolve) => {
      this.#end = resolve
      this.#deadline = this.#deadlines.begin(() => this.end())
      this.#attempt()
    })
    return this.#over
  }

  end(): void {
    this.isOver = true
    if (this.#deadline !== undefined) this.#deadlines.end(this.#deadline)
    clearTimeout(this.#retry)
    this.#socket?.destroy()
    this.#end()
  }

  #attempt(): void {
    const { host, port, tls } = this.#target
    const servername = isIP(host) === 0 ? host : ''
    const socket = tls === undefined ? connect({ host, port }) : connectTls({ servername, ...tls, host, port })
    this.#socket = socket
    let isConnected = false
    socket.once('connect', () => {
      isConnected = true
      if (tls === undefined) this.end()
    })
    socket.once('secureConnect', () => this.end())
    socket.once('error', () => {
      if (isConnected) this.end()
      else if (!this.isOver) this.#retry = setTimeout(() => this.#attempt(), retryMs)
    })
  }
}
