import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import type { Origin } from './origin.js'

type Done = (error?: Error | null) => void

/** How long a connection on which writes fail may still deliver a response. */
const drainMs = 1_000

/** The name for SNI and the certificate; an IP address is not a server name. */
const serverName = ({ hostname }: Origin): string | undefined => (isIP(hostname) === 0 ? hostname : undefined)

/** Opens a connection. Calls `settle` with null once it is ready for requests, or with an error. */
export function openSocket(origin: Origin, settle: (error: Error | null) => void): Socket {
  const { isSecure, hostname: host, port } = origin
  const servername = serverName(origin)
  const socket = isSecure
    ? connectSecurely({ host, port, ALPNProtocols: ['http/1.1'], ...(servername !== undefined && { servername }) })
    : connect({ host, port })
  // undici would call both natively for every request; connections are closed with their pool instead.
  socket.ref = socket.unref = () => socket
  return socket
    .setNoDelay(true)
    .setKeepAlive(true, 60_000)
    .once(isSecure ? 'secureConnect' : 'connect', () => settle(null))
    .on('error', (error: NodeJS.ErrnoException) => {
      // undici treats a reset as the regular end of a body without a length, so truncated bodies would look complete. If
      // the body is paused at that moment, undici throws in its listener, which would crash the process.
      if (error.code === 'ECONNRESET') error.code = 'FLUXGATE_UPSTREAM_RESET'
      settle(error)
    })
    .once('close', () => settle(new Error('the upstream closed the connection')))
}

/**
 * A write that fails destroys its socket together with a response that has arrived but was not read: the response of an
 * upstream that rejects an upload. The failure is reported only after the response had time to arrive; usually the end of
 * the response ends the socket before that.
 */
export function drainBeforeFailing(socket: Socket): void {
  const drained = (done: Done): Done => {
    return (error) => {
      if (!error || socket.readableEnded) done(error)
      else setTimeout(() => done(error), drainMs).unref()
    }
  }
  const write = socket._write.bind(socket)
  socket._write = (chunk, encoding, done) => write(chunk, encoding, drained(done))
  const writeAll = socket._writev?.bind(socket)
  if (writeAll) socket._writev = (chunks, done) => writeAll(chunks, drained(done))
}
