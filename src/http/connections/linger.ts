import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** How long a client has to read an answer that came while it was still sending. */
const lingerMs = 1_000

/**
 * Ends a connection on which the client is still sending, without reading what it sends. Closed at once, it would be reset,
 * and a reset takes with it the answer that the client has not read yet.
 */
export function linger(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  socket.end()
}

/**
 * Ends a connection in the middle of a response. If the response ends with its connection, a regular end would make the part
 * look complete. A reset does not; over TLS, the missing close alert shows the same.
 */
export function cutOff(socket: Duplex): void {
  if ('encrypted' in socket) {
    socket.destroy()
    return
  }
  const connection = socket as Socket
  // Otherwise Node ends the connection regularly before it resets it.
  connection.destroySoon = () => void connection.destroy()
  connection.resetAndDestroy()
}
