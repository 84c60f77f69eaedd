import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { linger } from './linger.js'
import { type Answer, rawAnswer, rawHead } from './raw-answer.js'

/** What a `clientError` of `node:http` is about. */
export interface ParseError extends Error {
  readonly code?: string
  /** What was being read. */
  readonly rawPacket?: Buffer
}

/** Tells a client whose request is not HTTP, too large or too slow, what `answerTo` says; if there is still somebody to tell. */
export function answerParseError(error: ParseError, socket: Duplex, answerTo: (error: ParseError) => Answer): void {
  // Before hands are shaken there is nobody who could read an answer.
  const isStranger = (socket as { secureConnecting?: boolean }).secureConnecting === true
  // As node:http itself finds it: what would be written into the middle of a response is not written.
  const current = (socket as { _httpMessage?: ServerResponse })._httpMessage
  if (error.code === 'ECONNRESET' || isStranger || !socket.writable || current?.headersSent) {
    socket.destroy()
    return
  }
  const isHead = error.rawPacket?.toString('latin1', 0, 5) === 'HEAD '
  const answer = answerTo(error)
  socket.write(isHead ? rawHead(answer) : rawAnswer(answer))
  linger(socket)
}
