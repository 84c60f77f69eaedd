import { STATUS_CODES } from 'node:http'
import type { Answer } from '../../http/connections/raw-answer.js'
import { problemMediaType } from '../../http/problem-document.js'
import type { UpstreamFailure } from '../upstream/exchange.js'

/** A problem document (RFC 9457). Details must not reveal anything about the upstream. */
export function problemAnswer(status: number, detail: string, headers: Readonly<Record<string, string>> = {}): Answer {
  const problem = { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail }
  return { status, headers: { ...headers, 'Content-Type': problemMediaType }, body: `${JSON.stringify(problem)}\n` }
}

export const noRoute = (): Answer => problemAnswer(404, 'No route of this gateway matches the request.')

export const ambiguousPath = (): Answer =>
  problemAnswer(
    400,
    'The path has %2F, %5C or a semicolon, and its interpretations lead to different routes. Send the path without these characters.',
  )

export const internalProblem = (): Answer => problemAnswer(500, 'The gateway could not handle this request.')

export function failureAnswer({ kind }: UpstreamFailure): Answer {
  switch (kind) {
    case 'TIMEOUT':
      return problemAnswer(504, 'The service behind this gateway did not answer in time.')
    case 'STALLED':
      return problemAnswer(408, 'The request body arrives too slowly. Send it faster, or in parts.', {
        Connection: 'close',
      })
    case 'BUSY':
      return problemAnswer(503, 'The service behind this gateway is busy. Try again in 1 s.', { 'Retry-After': '1' })
    case 'REFUSED':
      return problemAnswer(502, 'The service behind this gateway cannot be reached.')
    case 'UNSENDABLE':
      return problemAnswer(400, 'The request has a header or a path that cannot be forwarded.')
    default:
      return problemAnswer(502, 'The service behind this gateway sent an invalid response.')
  }
}
