import { type Rejection, unlessGone } from '../../http/guard.js'
import { stackedHeaders } from '../../http/headers/stacked-headers.js'
import type { PlaceOf } from '../../http/place.js'
import { closesUnread, edgeOf, frameworkAddress, type NodeRequest, type NodeResponse } from '../edge/node-edge.js'
import { limitFor } from './nest-decorators.js'
import { scopeOf } from './nest-scopes.js'

/** As much of Nest's ExecutionContext as is needed. */
export interface NestContext {
  getType(): string
  getHandler(): { readonly name: string }
  getClass(): { readonly name: string }
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown }
}

/** Of Express, or of Fastify, which has those of Node inside. */
export type NestRequest = NodeRequest & { readonly raw?: NodeRequest }
/** With the property of each limit that has decided on it. */
export type DecidedRequest = NodeRequest & Record<symbol, unknown>
type NestResponse = NodeResponse & {
  readonly raw?: NodeResponse
  /** Of Fastify: true if the reply was sent or hijacked. */
  readonly sent?: boolean
  header(name: string, value: string): unknown
}

/**
 * Asks before a handler is called. What is refused is thrown, so that exception filters see it. `decided` is the property of
 * a request that holds the place where it was counted last, so that none is counted twice in one place.
 */
export async function canActivate<Request extends NestRequest>(
  context: NestContext,
  placeOf: PlaceOf<Request>,
  exceptionOf: (refusal: Rejection) => Promise<Error>,
  decided: symbol,
): Promise<boolean> {
  if (context.getType() !== 'http') return true
  const [method, owner] = [context.getHandler(), context.getClass()]
  const { limit, isOfMethod } = limitFor(method, owner)
  const place = placeOf(limit, () => scopeOf(owner, isOfMethod ? method : undefined))
  const request = context.switchToHttp().getRequest() as Request
  const raw = (request.raw ?? request) as DecidedRequest
  const isCounted = place !== undefined && raw[decided] === place
  raw[decided] = place ?? false
  if (place === undefined || isCounted) return true
  const response = context.switchToHttp().getResponse() as NestResponse
  const address = place.guard.followsFramework ? frameworkAddress(request) : undefined
  const edge = edgeOf(raw, response.raw ?? response, request.originalUrl, address)
  const admitted = await place.guard.admit(edge, request, place.overrides)
  const outcome = unlessGone(admitted, response.sent === true || edge.isGone())
  // Neither the application nor a filter has anything to do. One promise per request: a shared one would retain them all.
  if (outcome.kind === 'GONE') return new Promise<boolean>(() => {})
  const headers = stackedHeaders(outcome.headers, response, outcome.kind === 'REFUSE')
  for (const name in headers) response.header(name, headers[name] as string)
  if (outcome.kind === 'PASS') return true
  if (closesUnread(raw)) response.header('Connection', 'close')
  throw await exceptionOf(outcome)
}
