import type { Decision } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'
import { wrongValue } from '../validation/kind.js'
import type { GuardOptions } from './guard-options.js'
import { closingProblem, type Problem, problemMediaType, rejectionProblem } from './problem-document.js'

/** The response to a rejected request. */
export interface Rejection {
  readonly kind: 'REJECTED'
  readonly status: number
  readonly headers: Headers
  /** The content of the body, for frameworks that serialize it themselves. */
  readonly content: string | object
  readonly body: string
  /** Undefined if the request was rejected without a decision, because the guard is closed. */
  readonly decision: Decision | undefined
}

type Headers = Readonly<Record<string, string>>

/** A rejection with a problem document. */
export const rejection = (problem: Problem, headers: Headers, decision: Decision | undefined): Rejection => ({
  kind: 'REJECTED',
  status: problem.status,
  headers: { ...headers, 'Content-Type': problemMediaType },
  content: problem,
  body: `${JSON.stringify(problem)}\n`,
  decision,
})

/** The rejection of delayed and later requests after the guard has closed. */
export const closing = (): Rejection => rejection(closingProblem(), { 'Retry-After': '1' }, undefined)

/** A rejection by the options `statusCode`, `message` and `onRejected`. */
export async function ownRejection<Native>(
  { statusCode, message, onRejected }: Pick<GuardOptions<Native, never>, 'statusCode' | 'message' | 'onRejected'>,
  decision: Decision,
  headers: Headers,
  native: Native,
): Promise<Rejection> {
  const problem = rejectionProblem(decision)
  const isFailure = decision.reason === 'STORE_FAILURE'
  const status = isFailure ? problem.status : (statusCode ?? problem.status)
  const standard = rejection({ ...problem, status }, headers, decision)
  // The hook sets the type of the body that it sends.
  if (onRejected !== undefined) return { ...standard, headers }
  if (isFailure || message === undefined) return standard
  const content = typeof message === 'function' ? await message(decision, native) : message
  const isText = typeof content === 'string'
  if (!isText && (typeof content !== 'object' || content === null))
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `The result of message(decision, request) ${wrongValue(content, 'a string or an object')}.`,
    )
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8'
  const body = isText ? content : JSON.stringify(content)
  return { ...standard, headers: { ...headers, 'Content-Type': type }, content, body }
}
