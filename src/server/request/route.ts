import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { jsonChunksSteps } from '../../core/json/json-steps.js'
import { inSlices } from '../../core/scheduling/steps.js'
import type { Kind } from '../../validation/kind.js'

/** Required token: PUBLIC none, CHECK the check or admin token, ADMIN the admin token. */
export type Access = 'PUBLIC' | 'CHECK' | 'ADMIN'

/** A parsed and validated request. */
export interface Call<Body = unknown, Query = unknown> {
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
  readonly headers: IncomingHttpHeaders
  /** The caller, for the edit history and the log. Contains no secret. */
  readonly by: string
}

/** The response of a route. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent unchanged, with the content type of `headers`. */
  readonly text?: string | Buffer
  /** Like `text`, in several pieces. */
  readonly chunks?: readonly Buffer[]
  /** Writes the response itself and keeps it open. */
  readonly stream?: (response: ServerResponse) => void
}

export interface ResponseSpec {
  readonly description: string
  /** Schema of a JSON body. Without it, there is no body, or a body of one of the content types `type`. */
  readonly schema?: Kind<unknown>
  readonly type?: string | readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

/** A route definition. The same schemas validate requests and are published at /openapi.json. */
export interface Route<Body = unknown, Query = unknown> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `/api/rule-sets/:id`; a final `:key*` matches the rest of the path, including slashes. */
  readonly path: string
  /** The OpenAPI operation ID. Must be unique. */
  readonly name: string
  readonly summary: string
  /** The OpenAPI description; defaults to the summary. */
  readonly description?: string
  readonly group: string
  readonly access: Access
  readonly query?: Kind<unknown>
  readonly body?: Kind<unknown>
  /** True if the body may be omitted. */
  readonly isBodyOptional?: boolean
  /** True for rules and overrides. Their store validates them: it accepts all spellings and reports every issue at once. */
  readonly isCheckedByStore?: boolean
  /** Descriptions of request headers, by name. */
  readonly headers?: Readonly<Record<string, string>>
  readonly responses: Readonly<Record<number, ResponseSpec>>
  /** May answer synchronously: a promise costs a check more than the decision itself. */
  handle(call: Call<Body, Query>): Reply | Promise<Reply>
  /** Pages only: the response with status 401 to a browser without a valid token, in place of a problem document. */
  signIn?(headers: IncomingHttpHeaders): Reply | undefined
}

/** Infers the types of `handle` from the schemas. */
export function route<B = unknown, Q = unknown>(
  definition: Omit<Route<B, Q>, 'body' | 'query'> & { readonly body?: Kind<B>; readonly query?: Kind<Q> },
): Route {
  return definition as unknown as Route
}

/** A JSON response that may contain thousands of rules. Serializes in slices, to keep the event loop responsive. */
export async function longJson(
  body: unknown,
  status = 200,
  headers?: Readonly<Record<string, string>>,
): Promise<Reply> {
  return {
    status,
    chunks: await inSlices(jsonChunksSteps(body)),
    headers: { 'Content-Type': 'application/json', ...headers },
  }
}

export const json = (body: unknown, status = 200, headers?: Readonly<Record<string, string>>): Reply => ({
  status,
  json: body,
  ...(headers && { headers }),
})
