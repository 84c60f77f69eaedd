import type { EdgeRequest } from '../../../http/edge-request.js'
import type { Guard, Outcome } from '../../../http/guard.js'
import type { Rejection } from '../../../http/rejection.js'
import type { NodeResponse } from '../../edge/node-edge.js'

/** The part of Nest's `ExecutionContext` that is used. */
export interface NestContext {
  /** Returns the transport: `http`, `graphql`, `ws` or another one. */
  getType(): string
  /** Returns the method that is called. */
  getHandler(): { readonly name: string }
  /** Returns the controller, resolver or gateway of the method. */
  getClass(): { readonly name: string }
  /** Returns the arguments of the call, which depend on the transport. */
  getArgs(): readonly unknown[]
  /** Returns the request and response of an HTTP call. */
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown }
}

/** The object that identifies a call in all of its contexts: guards and parameter decorators get different ones. */
export function subjectOf(context: NestContext): object {
  const [first, second, third, fourth] = context.getArgs() as object[]
  switch (context.getType()) {
    case 'graphql':
      // Fields of one operation run at the same time; each has its own `info`.
      return (fourth ?? third) as object
    case 'ws':
      // Messages of a client are handled at the same time; each has its own data, unless that is no object.
      return (typeof second === 'object' && second !== null ? second : first) as object
    default:
      return (first as { readonly raw?: object }).raw ?? (first as object)
  }
}

/** A call that a guard decides about: an HTTP request, a field of a GraphQL operation, or a WebSocket message. */
export interface NestCall {
  /** The request that is passed to hooks. */
  readonly native: object
  /** The reply that is passed to `onRejected`. */
  readonly reply: object
  /** The response of Node; undefined if the call has none, or it is not known. */
  readonly response: NodeResponse | undefined
  edgeFor(guard: Pick<Guard, 'usesFrameworkIp'>): EdgeRequest
  /** True if no response can be sent any more. */
  isAborted(): boolean
  setHeaders(outcome: Exclude<Outcome, { kind: 'ABORTED' }>): void
  /** False if `onRejected` cannot send the rejection, because the call has to end with a result or an error. */
  readonly sendsReplies: boolean
  /** Prepares the reply for `onRejected`. */
  prepareReply(rejection: Rejection): void
  /** The exception that rejects the call. It is of Nest's own class, because exception filters test for it. */
  exceptionOf(rejection: Rejection): Promise<Error>
}

/** The message of a rejection: text of the option `message`, or the detail of the problem document. */
export const messageOf = ({ content }: Rejection): string => {
  const { message, detail } = content as { readonly message?: unknown; readonly detail?: unknown }
  if (typeof content === 'string') return content
  return typeof message === 'string' ? message : typeof detail === 'string' ? detail : 'Too many requests'
}
