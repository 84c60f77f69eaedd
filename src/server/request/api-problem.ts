import { STATUS_CODES } from 'node:http'
import { type ErrorCode, errorCodes, FluxGateError, type ValidationIssue } from '../../core/errors.js'
import type { ParseError } from '../../http/connections/parse-error.js'
import type { Answer } from '../../http/connections/raw-answer.js'
import { problemMediaType } from '../../http/problem-document.js'

/**
 * Problem codes of the HTTP API with their status and default detail. They extend the codes of core/errors. A test compares
 * both with docs/reference/http-api.md.
 */
export const requestProblems = {
  FLUXGATE_REQUEST_INVALID: [400, 'The request is invalid. `errors` lists every error with its location.'],
  FLUXGATE_UNAUTHORIZED: [401, 'The token is missing, or not valid for this route.'],
  FLUXGATE_ORIGIN_FORBIDDEN: [403, 'The Host header is not allowed, or the request comes from a page of another site.'],
  FLUXGATE_NOT_FOUND: [404, 'The resource does not exist.'],
  FLUXGATE_METHOD_NOT_ALLOWED: [405, 'The resource does not support this method. `Allow` lists the supported ones.'],
  FLUXGATE_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
  FLUXGATE_ALREADY_EXISTS: [409, 'The resource already exists.'],
  FLUXGATE_RULES_NOT_IN_FORCE: [409, 'The stored rules cannot be loaded. The previous rules stay in effect.'],
  FLUXGATE_BODY_TOO_LARGE: [413, 'The body is larger than 1 MiB.'],
  FLUXGATE_MEDIA_TYPE_UNSUPPORTED: [415, 'The body must be JSON in UTF-8.'],
  FLUXGATE_HEADERS_TOO_LARGE: [431, 'The request has too many headers, or they are too long.'],
  FLUXGATE_INTERNAL: [500, 'Internal server error. The server log has the details.'],
  FLUXGATE_NOT_SUPPORTED: [501, 'This server is not configured for this operation.'],
  FLUXGATE_UNAVAILABLE: [503, 'The server is at its limit for this operation, or is stopping.'],
} as const

export type RequestProblem = keyof typeof requestProblems

/** Statuses of library errors that the request caused. All other library errors are failures of a dependency: 503. */
export const errorStatus: Readonly<Partial<Record<ErrorCode, number>>> = {
  FLUXGATE_RULES_INVALID: 400,
  FLUXGATE_OVERRIDE_INVALID: 400,
  FLUXGATE_BAN_INVALID: 400,
  FLUXGATE_ARGUMENT_INVALID: 400,
  FLUXGATE_COST_UNKNOWN: 400,
  FLUXGATE_RULES_READ_ONLY: 403,
  FLUXGATE_RULE_SET_UNKNOWN: 404,
  FLUXGATE_CANDIDATE_UNKNOWN: 404,
  FLUXGATE_RESERVATION_UNKNOWN: 404,
  FLUXGATE_RESERVATION_UNSUPPORTED: 409,
  FLUXGATE_RESERVATION_EXPIRED: 410,
  FLUXGATE_RULES_CONFLICT: 412,
  FLUXGATE_RESERVATION_LIMIT: 429,
}

const dependencyStatus = 503

/** An RFC 9457 problem document with a stable error code. */
export interface ProblemDocument {
  readonly type: 'about:blank'
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: RequestProblem | ErrorCode
  /** All validation issues of the request or the document in it. */
  readonly errors?: readonly ValidationIssue[]
}

/** An error response. Thrown while a request is read and by the routes. */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem'
  readonly code: RequestProblem
  readonly errors: readonly ValidationIssue[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: RequestProblem,
    detail: string = requestProblems[code][1],
    {
      errors = [],
      headers = {},
    }: { errors?: readonly ValidationIssue[]; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail)
    this.code = code
    this.errors = errors
    this.headers = headers
  }
}

export const invalidRequest = (path: string, message: string): ApiProblem =>
  new ApiProblem('FLUXGATE_REQUEST_INVALID', `${path}: ${message}`, { errors: [{ path, message }] })

/** The problem document for any error. An unexpected error reveals no details to the client. */
export function problemOf(error: unknown): ProblemDocument {
  if (error instanceof ApiProblem) return documentOf(requestProblems[error.code][0], error)
  if (error instanceof FluxGateError)
    return documentOf(errorStatus[error.code] ?? dependencyStatus, withoutSecrets(error))
  return documentOf(500, { code: 'FLUXGATE_INTERNAL', message: requestProblems.FLUXGATE_INTERNAL[1], errors: [] })
}

type PublicError = Pick<ProblemDocument, 'code'> & {
  readonly message: string
  readonly errors: readonly ValidationIssue[]
}

/** Store errors may contain addresses, so the client receives only the general description of the code. The log has the message. */
function withoutSecrets({ code, message, errors }: FluxGateError): PublicError {
  return { code, message: errorStatus[code] === undefined ? errorCodes[code] : message, errors }
}

function documentOf(status: number, { code, message, errors }: PublicError): ProblemDocument {
  const title = STATUS_CODES[status] ?? 'Error'
  return { type: 'about:blank', title, status, detail: message, code, ...(errors.length > 0 && { errors }) }
}

/** The response to a request that the HTTP parser rejected: malformed, too large or too slow. */
export function parseErrorAnswer({ code }: ParseError): Answer {
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
