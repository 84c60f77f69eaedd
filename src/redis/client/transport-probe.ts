/**
 * Finds out why a connection is not established: a server without TLS waits in silence for the end of what it takes for a
 * command, and a server with TLS closes a plain connection without a word. Nothing secret is sent.
 */
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { messageOf } from '../../core/errors.js'
import { Deadlines } from '../../core/scheduling/deadlines.js'

interface Node {
  readonly host: string
  readonly port: number
}

/** How long an attempt to connect may stay silent before the server is probed. */
export const silentAttemptMs = 200
/** Time in which the event loop could run, so that a stall hides no answer. */
const answers = new Deadlines(1_000)

/** An error that `isMisconfigured` if one of the nodes answers, but with TLS where none is used, or without where it is. */
export async function transportMismatch(nodes: readonly Node[], isTls: boolean): Promise<Error | undefined> {
  const answers = await Promise.all(nodes.map((node) => (isTls ? answersPlain(node) : answersTls(node))))
  if (!answers.includes(true)) return undefined
  return new Error(isTls ? 'the server does not speak TLS' : 'the server speaks TLS only')
}

/** Whether the error of an attempt leaves open if the server uses the other transport. */
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

/** Replies begin with `+` or `-`, also those of a server that asks for a password first. */
function answersPlain({ host, port }: Node): Promise<boolean> {
  const socket = connect({ host, port })
  socket.write('PING\r\n')
  return answerOf(socket, (settle) => {
    socket.once('data', (reply: Buffer) => settle(reply[0] === 0x2b || reply[0] === 0x2d))
  })
}

/** The certificate does not matter: nothing is sent, and the connection is closed after the handshake. */
function answersTls({ host, port }: Node): Promise<boolean> {
  const name = isIP(host) === 0 ? { servername: host } : {}
  const socket = connectTls({ host, port, ...name, rejectUnauthorized: false })
  return answerOf(socket, (settle) => {
    socket.once('secureConnect', () => settle(true))
  })
}

function answerOf(socket: Socket, listen: (settle: (answers: boolean) => void) => void): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    const deadline = answers.begin(() => resolve(false))
    listen(resolve)
    socket.on('error', () => resolve(false))
    socket.on('close', () => {
      answers.end(deadline)
      resolve(false)
    })
  }).finally(() => socket.destroy())
}
