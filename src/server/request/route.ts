import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Static, TObject, TSchema, TUnknown } from 'typebox'
import { jsonTextSteps } from '../../core/json/written-json.js'
import { inSlices } from '../../core/scheduling/steps.js'

/** Who may ask: anybody; who has the check token or the admin token; who has the admin token. */
export type Access = 'PUBLIC' | 'CHECK' | 'ADMIN'

/** One request as a route sees it: read, bounded and checked. */
export interface Call<Body = unknown, Query = unknown> {
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
  readonly headers: IncomingHttpHeaders
  /** Who asks, for the history and the log; never a secret. */
  readonly by: string
}

/** What a route answers. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as it is, with the type that `headers` gives. */
  readonly text?: string | Buffer
  /** Takes over the response, which stays open. */
  readonly stream?: (response: ServerResponse) => void
}

export interface ResponseSpec {
  readonly description: string
  /** Of the JSON; without one there is no body, or one of another `type`. */
  readonly schema?: TSchema
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A route is described once: the same schemas check requests and are published at /openapi.json. */
export interface Route<Body = unknown, Query = unknown> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `/api/rule-sets/:id`; `:key*` at the end takes the rest, slashes and all. */
  readonly path: string
  /** The name of the operation, unique. */
  readonly name: string
  readonly summary: string
  /** For the OpenAPI document, if there is more to say than the summary. */
  readonly description?: string
  readonly group: string
  readonly access: Access
  readonly query?: TObject
  readonly body?: TSchema
  /** The body may be left out. */
  readonly isBodyOptional?: boolean
  /** Rules and overrides are checked by their store, which finds every mistake at once and knows all spellings. */
  readonly isCheckedByStore?: boolean
  /** Headers of the request that matter, by name, with what they mean. */
  readonly headers?: Readonly<Record<string, string>>
  readonly responses: Readonly<Record<number, ResponseSpec>>
  /** Answers at once where it can: a promise costs a check more than the decision. */
  handle(call: Call<Body, Query>): Reply | Promise<Reply>
}

/** Types `handle` by the schemas. */
export function route<B extends TSchema = TUnknown, Q extends TObject = TObject>(
  definition: Omit<Route<Static<B>, Static<Q>>, 'body' | 'query'> & { readonly body?: B; readonly query?: Q },
): Route {
  return definition as unknown as Route
}

/** As `json`, for what may hold thousands of rules: its text is made in slices. */
export async function longJson(
  body: unknown,
  status = 200,
  headers?: Readonly<Record<string, string>>,
): Promise<Reply> {
  return {
    status,
    text: await inSlices(jsonTextSteps(body)),
    headers: { 'Content-Type': 'application/json', ...headers },
  }
}

export const json = (body: unknown, status = 200, headers?: Readonly<Record<string, string>>): Reply => ({
  status,
  json: body,
  ...(headers && { headers }),
})
