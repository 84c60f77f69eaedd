import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Answer, problemAnswer, rawAnswer } from './gateway-problem.js'
import { linger } from './linger.js'
import { badRequest, type RequestLimits, tooManyHeaders } from './objection.js'

interface ParseError extends Error {
  readonly code?: string
  /** What was being read. */
  readonly rawPacket?: Buffer
}

/** What a client is told whose request is not HTTP, too large or too slow. */
export function answerClientError(error: ParseError, socket: Duplex, limits: RequestLimits): void {
  // Before hands are shaken there is nobody who could read an answer.
  const isStranger = (socket as { secureConnecting?: boolean }).secureConnecting === true
  if (error.code === 'ECONNRESET' || isStranger || !socket.writable) {
    socket.destroy()
    return
  }
  // As node:http itself finds it: what would be written into the middle of a response is not written.
  const current = (socket as { _httpMessage?: ServerResponse })._httpMessage
  if (current?.headersSent) {
    socket.destroy()
    return
  }
  socket.write(rawAnswer(answerTo(error, limits)))
  linger(socket)
}

function answerTo({ code, rawPacket }: ParseError, limits: RequestLimits): Answer {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return isLongUrl(rawPacket, limits.maxUrlLength)
        ? problemAnswer(414, `A URL may have ${limits.maxUrlLength} characters.`)
        : tooManyHeaders(limits)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return problemAnswer(408, 'The request did not arrive in time.')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return problemAnswer(413, 'The chunks have too many extensions.')
    default:
      return badRequest('This is not an HTTP request that everybody would understand alike.')
  }
}

/** Whether it was the URL that was too long: as far as it was read, there is little else. */
function isLongUrl(packet: Buffer | undefined, max: number): boolean {
  const [, url = ''] = /^[A-Z-]{1,20} ([^ \r\n]*)/.exec(packet?.toString('latin1') ?? '') ?? []
  return url.length > max
}
