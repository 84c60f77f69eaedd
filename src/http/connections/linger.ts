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
