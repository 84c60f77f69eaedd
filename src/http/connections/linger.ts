import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** The time for a client to read a response that was sent before its request was complete. */
const lingerMs = 1_000

/**
 * Closes a connection on which the client is still sending (lingering close). Closing it at once would reset it, and the client
 * would lose a response that it has not read yet.
 */
export function linger(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  socket.end()
}

/**
 * Closes a connection in the middle of a response. If the end of the connection marks the end of the response, a regular close
 * would make the part look complete. A reset does not; over TLS, the missing close alert has the same effect.
 */
export function cutOff(socket: Duplex): void {
  if ('encrypted' in socket) {
    socket.destroy()
    return
  }
  const connection = socket as Socket
  // Otherwise Node closes the connection regularly before the reset.
  connection.destroySoon = () => void connection.destroy()
  connection.resetAndDestroy()
}
