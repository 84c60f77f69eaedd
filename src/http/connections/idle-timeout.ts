import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Closes idle keep-alive connections without losing requests. After a stall of the event loop, the keep-alive timer runs
 * before the sockets are read: `node:http` would reset a connection whose next request has already arrived. Each connection
 * therefore gets one turn to be read before it is closed.
 */
export function closeIdleAfterReading(server: Server): void {
  server.on('timeout', (socket: Socket) => {
    const { bytesRead } = socket
    setImmediate(() => {
      if (socket.bytesRead === bytesRead) socket.destroy()
    })
  })
}
