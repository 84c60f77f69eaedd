import { STATUS_CODES } from 'node:http'
import { type ErrorCode, errorCodes, FluxGateError, type Mistake } from '../../core/errors.js'

/** What only a server says, beside the codes of core/errors. docs/reference/http-api.md lists both, and a test compares. */
export const requestProblems = {
  FLUXGATE_REQUEST_INVALID: [400, 'The request has mistakes; `errors` lists each with its place.'],
  FLUXGATE_UNAUTHORIZED: [401, 'The request has no token, or one that does not open this route.'],
  FLUXGATE_ORIGIN_FORBIDDEN: [403, 'The request names another host, or comes from the page of another one.'],
  FLUXGATE_NOT_FOUND: [404, 'There is nothing here.'],
  FLUXGATE_METHOD_NOT_ALLOWED: [405, 'This resource has other methods; `Allow` lists them.'],
  FLUXGATE_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
  FLUXGATE_ALREADY_EXISTS: [409, 'What should be created is there already.'],
  FLUXGATE_RULES_NOT_IN_FORCE: [409, 'The rules cannot be loaded as they are kept; those from before are in force.'],
  FLUXGATE_BODY_TOO_LARGE: [413, 'The body is larger than 1 MiB.'],
  FLUXGATE_MEDIA_TYPE_UNSUPPORTED: [415, 'The body is something other than JSON in UTF-8.'],
  FLUXGATE_HEADERS_TOO_LARGE: [431, 'There are too many headers, or they are too long.'],
  FLUXGATE_INTERNAL: [500, 'The server has made a mistake, which is in its log.'],
  FLUXGATE_NOT_SUPPORTED: [501, 'This server was set up without what the route needs.'],
  FLUXGATE_UNAVAILABLE: [503, 'Everything of this kind is taken, or the server is stopping.'],
} as const

export type RequestProblem = keyof typeof requestProblems

/** Errors of the library that come from what was asked. All others come from what the server depends on: 503. */
export const errorStatus: Readonly<Partial<Record<ErrorCode, number>>> = {
  FLUXGATE_RULES_INVALID: 400,
  FLUXGATE_OVERRIDE_INVALID: 400,
  FLUXGATE_ARGUMENT_INVALID: 400,
  FLUXGATE_RULES_READ_ONLY: 403,
  FLUXGATE_RULE_SET_UNKNOWN: 404,
  FLUXGATE_RULES_CONFLICT: 412,
}

const dependencyStatus = 503

/** RFC 9457, and what went wrong as a code that programs can rely on. */
export interface ProblemDocument {
  readonly type: 'about:blank'
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: RequestProblem | ErrorCode
  /** Every mistake of a document or of a request. */
  readonly errors?: readonly Mistake[]
}

/** A request that is not answered as it was meant; thrown by routes, and by what comes before them. */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem'
  readonly code: RequestProblem
  readonly errors: readonly Mistake[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: RequestProblem,
    detail: string = requestProblems[code][1],
    { errors = [], headers = {} }: { errors?: readonly Mistake[]; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail)
    this.code = code
    this.errors = errors
    this.headers = headers
  }
}

export const invalidRequest = (path: string, message: string): ApiProblem =>
  new ApiProblem('FLUXGATE_REQUEST_INVALID', `${path}: ${message}`, { errors: [{ path, message }] })

/** What a client is told of any error. Of one that nobody foresaw: nothing. */
export function problemOf(error: unknown): ProblemDocument {
  if (error instanceof ApiProblem) return documentOf(requestProblems[error.code][0], error)
  if (error instanceof FluxGateError)
    return documentOf(errorStatus[error.code] ?? dependencyStatus, withoutSecrets(error))
  return documentOf(500, { code: 'FLUXGATE_INTERNAL', message: requestProblems.FLUXGATE_INTERNAL[1], errors: [] })
}

type Told = Pick<ProblemDocument, 'code'> & { readonly message: string; readonly errors: readonly Mistake[] }

/** What a store says of itself is for the log: whoever asks for decisions need not know where it is. */
function withoutSecrets({ code, message, errors }: FluxGateError): Told {
  return { code, message: errorStatus[code] === undefined ? errorCodes[code] : message, errors }
}

function documentOf(status: number, { code, message, errors }: Told): ProblemDocument {
  const title = STATUS_CODES[status] ?? 'Error'
  return { type: 'about:blank', title, status, detail: message, code, ...(errors.length > 0 && { errors }) }
}
