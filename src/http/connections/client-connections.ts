import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { linger } from './linger.js'
import type { ParseError } from './parse-error.js'
import { type Answer, rawAnswer, rawBodilessAnswer } from './raw-answer.js'

/** The time for a first request head that is still arriving when the server drains. */
const lastHeadMs = 1_000

interface Connection {
  readonly socket: Socket
  /** Responses that are not written yet, in the order of their requests. */
  readonly pending: Set<ServerResponse>
  /** The pending response to a request that cannot be parsed to its end. */
  broken: ServerResponse | undefined
  isUsed: boolean
  /** True if further requests on the connection are ignored. */
  isOver: boolean
  /** Called when no other response is pending any more. */
  onAnswered: (() => void) | undefined
}

/**
 * All connections of a server. `node:http` reports upgrades, CONNECT and parse errors while earlier responses are pending
 * (pipelining). This class delays them, so that no response is written before or into an earlier one.
 */
export class ClientConnections {
  readonly #connections = new Map<Duplex, Connection>()
  /** Connections whose TLS handshake is not complete, by peer: `node:http` does not know them. */
  readonly #handshakes = new Map<string, Socket>()

  constructor(server: Server, isSecure: boolean) {
    server.on(isSecure ? 'secureConnection' : 'connection', (socket: Socket) => this.#open(socket))
    if (isSecure)
      server.on('connection', (socket: Socket) => {
        const peer = peerOf(socket)
        this.#handshakes.set(peer, socket)
        socket.once('close', () => this.#handshakes.get(peer) === socket && this.#handshakes.delete(peer))
      })
  }

  /**
   * Must be called for every request. Returns false if the request must be ignored, because the connection closes after an
   * earlier one. `onClose` is called once, when the response closes; a separate listener would cost more.
   */
  begin(response: ServerResponse, onClose?: () => void): boolean {
    const connection = this.#of(response.req.socket)
    connection.isUsed = true
    if (connection.isOver) return false
    connection.pending.add(response)
    response.on('close', () => {
      if (!connection.pending.delete(response)) return
      if (connection.onAnswered !== undefined) this.#settle(connection)
      onClose?.()
    })
    return true
  }

  /** Requests that follow on the connection are ignored. */
  endAfterThis(socket: Duplex): void {
    this.#of(socket).isOver = true
  }

  /** Calls `then` when all earlier responses are written, unless the connection closes before. */
  whenAnswered(socket: Duplex, then: () => void): void {
    const connection = this.#of(socket)
    connection.isUsed = true
    if (connection.isOver) return
    if (connection.pending.size === 0) {
      then()
      return
    }
    const onError = (): unknown => socket.destroy()
    const onDrain = (): void => {
      for (const response of connection.pending) if (response.socket === socket) response.emit('drain')
    }
    // node:http has removed its own listeners, on which pending responses rely.
    socket.on('error', onError).on('drain', onDrain)
    connection.onAnswered = () => {
      socket.off('error', onError).off('drain', onDrain)
      // `node:http` has set a timeout for the next request.
      connection.socket.setTimeout(0)
      then()
    }
  }

  /** Responds to a `clientError` of the server after earlier responses, and closes the connection. */
  answerParseError(error: ParseError, socket: Duplex, answerTo: (error: ParseError) => Answer): void {
    // The client cannot read a response before the handshake is complete.
    const isHandshake = (socket as { secureConnecting?: boolean }).secureConnecting === true
    if (error.code === 'ECONNRESET' || isHandshake || socket.errored) {
      socket.destroy()
      return
    }
    const connection = this.#of(socket)
    // The last response may not be flushed yet.
    if (connection.isOver || !socket.writable) return
    connection.isOver = true
    const broken = [...connection.pending].findLast(({ req }) => !req.complete)
    connection.broken = broken
    connection.onAnswered = () => {
      if (broken?.writableEnded || error.code === 'HPE_CLOSED_CONNECTION') linger(socket)
      else if (broken?.headersSent) socket.destroy()
      else {
        const answer = answerTo(error)
        socket.write(mayBeHead(error, broken, connection.socket) ? rawBodilessAnswer(answer) : rawAnswer(answer))
        linger(socket)
      }
    }
    this.#settle(connection)
  }

  /** Closes connections on which no request has arrived. `node:http` does not treat them as idle. */
  closeUnused(): void {
    for (const socket of this.#handshakes.values()) socket.destroy()
    this.#destroyUnused(({ bytesRead }) => bytesRead === 0)
    setTimeout(() => this.#destroyUnused(() => true), lastHeadMs).unref()
  }

  /** Closes all connections, tunnels included. */
  destroyAll(): void {
    for (const socket of this.#handshakes.values()) socket.destroy()
    for (const { socket } of this.#connections.values()) socket.destroy()
  }

  #destroyUnused(which: (socket: Socket) => boolean): void {
    for (const { socket, isUsed } of this.#connections.values()) if (!isUsed && which(socket)) socket.destroy()
  }

  #of(socket: Duplex): Connection {
    return this.#connections.get(socket) ?? this.#open(socket as Socket)
  }

  /** Called again for a connection that is returned to the server after a declined upgrade. */
  #open(socket: Socket): Connection {
    const known = this.#connections.get(socket)
    if (known !== undefined) return known
    this.#handshakes.delete(peerOf(socket))
    const pending = new Set<ServerResponse>()
    const connection: Connection = {
      socket,
      pending,
      broken: undefined,
      isUsed: false,
      isOver: false,
      onAnswered: undefined,
    }
    this.#connections.set(socket, connection)
    socket.once('close', () => this.#close(connection))
    return connection
  }

  #settle(connection: Connection): void {
    const { pending, broken, socket, onAnswered } = connection
    const isOther = pending.size > (broken !== undefined && pending.has(broken) ? 1 : 0)
    if (isOther || onAnswered === undefined || !socket.writable) return
    connection.onAnswered = undefined
    onAnswered()
  }

  /** Closes pending responses that wait for earlier ones: `node:http` does not close them when the client disconnects. */
  #close({ socket, pending }: Connection): void {
    this.#connections.delete(socket)
    for (const response of pending) {
      if (response.socket !== null || response.writableFinished) continue
      response.destroy()
      response.emit('close')
    }
  }
}

/**
 * Without a complete head, the method is known only from the last packet. The packet may begin with earlier requests, or
 * within the request line, if an earlier packet ended there.
 */
function mayBeHead({ rawPacket }: ParseError, broken: ServerResponse | undefined, { bytesRead }: Socket): boolean {
  if (broken !== undefined) return broken.req.method === 'HEAD'
  if (rawPacket === undefined) return false
  if (rawPacket.includes('HEAD ')) return true
  return bytesRead > rawPacket.length && !requestLine.test(rawPacket.toString('latin1'))
}

/** Begins with a method, and not with the end of HEAD. */
const requestLine = /^(?!E?A?D )[A-Z][A-Z-]* /m

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
