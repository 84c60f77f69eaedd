/**
 * Detects a TLS mismatch between client and server. A plain-text server never replies to a TLS handshake, because it waits
 * for the end of a command. A TLS server closes a plain-text connection without an error. The probe sends no secrets.
 */
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { messageOf } from '../../core/errors.js'
import { Deadlines } from '../../core/scheduling/deadlines.js'

interface Node {
  readonly host: string
  readonly port: number
}

/** How long a connection attempt may go without a reply before the server is probed. */
export const silentAttemptMs = 200
/** Blocked event-loop time does not count, so a stall cannot hide a reply. */
const probeDeadlines = new Deadlines(1_000)

/**
 * Probes the nodes with the other transport. Returns an error that `isMisconfigured` recognises if a node replies: it uses
 * TLS and the client does not, or the reverse.
 */
export async function transportMismatch(nodes: readonly Node[], isTls: boolean): Promise<Error | undefined> {
  const replies = await Promise.all(nodes.map((node) => (isTls ? repliesToPlain(node) : repliesToTls(node))))
  if (!replies.includes(true)) return undefined
  return new Error(isTls ? 'the server does not use TLS' : 'the server requires TLS')
}

/** True if a transport mismatch may have caused the failed connection attempt. */
export function mayBeMismatch(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (['ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(code)) return true
  return (
    error === undefined ||
    /^Connection is closed|connection was closed|does not answer|no reply in|timed? ?out|^Protocol error|^All sentinels|^Failed to refresh/i.test(
      messageOf(error),
    )
  )
}

/** A plain-text reply starts with `+`, or with `-` if the server requires a password. */
function repliesToPlain({ host, port }: Node): Promise<boolean> {
  const socket = connect({ host, port })
  socket.write('PING\r\n')
  return probeReply(socket, (settle) => {
    socket.once('data', (reply: Buffer) => settle(reply[0] === 0x2b || reply[0] === 0x2d))
  })
}

/** The certificate need not be verified: nothing is sent, and the connection closes after the handshake. */
function repliesToTls({ host, port }: Node): Promise<boolean> {
  const name = isIP(host) === 0 ? { servername: host } : {}
  const socket = connectTls({ host, port, ...name, rejectUnauthorized: false })
  return probeReply(socket, (settle) => {
    socket.once('secureConnect', () => settle(true))
  })
}

function probeReply(socket: Socket, listen: (settle: (isReply: boolean) => void) => void): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    const deadline = probeDeadlines.begin(() => resolve(false))
    listen(resolve)
    socket.on('error', () => resolve(false))
    socket.on('close', () => {
      probeDeadlines.end(deadline)
      resolve(false)
    })
  }).finally(() => socket.destroy())
}
