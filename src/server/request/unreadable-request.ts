import type { ParseError } from '../../http/connections/parse-error.js'
import type { Answer } from '../../http/connections/raw-answer.js'
import { problemMediaType } from '../../http/problem.js'
import { ApiProblem, problemOf } from './api-problem.js'

/** The response to a request that the HTTP parser rejected: malformed, too large or too slow. */
export function unreadableRequest({ code }: ParseError): Answer {
  const problem = problemOf(problemFor(code))
  return { status: problem.status, headers: { 'Content-Type': problemMediaType }, body: JSON.stringify(problem) }
}

function problemFor(code: string | undefined): ApiProblem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiProblem('FLUXGATE_HEADERS_TOO_LARGE')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiProblem('FLUXGATE_REQUEST_TIMEOUT')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiProblem('FLUXGATE_BODY_TOO_LARGE', 'The chunk extensions are too long.')
    default:
      return new ApiProblem('FLUXGATE_REQUEST_INVALID', 'The HTTP request is malformed or ambiguous.')
  }
}
