import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { rawAnswer } from '../gateway/gateway-problem.js'
import { linger } from '../gateway/linger.js'
import { problemMediaType } from '../http/problem.js'
import { ApiProblem, problemOf } from './api-problem.js'

interface ParseError extends Error {
  readonly code?: string
  /** What was being read. */
  readonly rawPacket?: Buffer
}

/** What a client is told whose request is not HTTP, too large or too slow. */
export function answerParseError(error: ParseError, socket: Duplex): void {
  // As node:http itself finds it: what would be written into the middle of a response is not written.
  const current = (socket as { _httpMessage?: ServerResponse })._httpMessage
  if (error.code === 'ECONNRESET' || !socket.writable || current?.headersSent) {
    socket.destroy()
    return
  }
  const problem = problemOf(problemFor(error.code))
  const body = JSON.stringify(problem)
  const answer = rawAnswer({ status: problem.status, headers: { 'Content-Type': problemMediaType }, body })
  const isHead = error.rawPacket?.toString('latin1', 0, 5) === 'HEAD '
  socket.write(isHead ? answer.slice(0, answer.length - body.length) : answer)
  linger(socket)
}

function problemFor(code: string | undefined): ApiProblem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiProblem('FLUXGATE_HEADERS_TOO_LARGE')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiProblem('FLUXGATE_REQUEST_TIMEOUT')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiProblem('FLUXGATE_BODY_TOO_LARGE', 'The chunks have too many extensions.')
    default:
      return new ApiProblem(
        'FLUXGATE_REQUEST_INVALID',
        'This is not an HTTP request that everybody would understand alike.',
      )
  }
}
