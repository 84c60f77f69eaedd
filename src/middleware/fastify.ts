import { type Outcome, whenAdmitted } from '../http/guard.js'
import type { PlaceOf } from '../http/place.js'
import { stackedHeaders } from '../http/stacked-headers.js'
import { edgeOf, isUnread, type NodeRequest, type NodeResponse } from './node-edge.js'

export interface FastifyRequest {
  readonly raw: NodeRequest
  readonly routeOptions: {
    readonly config?: object | undefined
    readonly method?: string | string[] | undefined
    readonly url?: string | undefined
  }
}

export interface FastifyReply {
  readonly raw: NodeResponse
  getHeader(name: string): unknown
  header(name: string, value: string): unknown
  code(status: number): unknown
  send(body: Buffer): unknown
  hijack(): unknown
}

export type FastifyHook<Request> = (request: Request, reply: FastifyReply, done: (error?: Error) => void) => void

export interface FastifyHookOptions {
  /** Whether a route may have a limit of its own. Asking a request about its route is not free. */
  readonly hasOwnLimits: () => boolean
  /** Whether another limit may have spoken on a reply before. */
  readonly isStacked: boolean
}

/** An `onRequest` hook. Not an async function: Fastify calls those that take `done` without a promise of its own. */
export function fastifyHook<Request extends FastifyRequest>(
  placeOf: PlaceOf<Request>,
  { hasOwnLimits, isStacked }: FastifyHookOptions,
): FastifyHook<Request> {
  return (request, reply, done) => {
    // What is thrown here is the hook's, which Fastify handles.
    const place = hasOwnLimits() ? ownPlace(request, placeOf) : placeOf(undefined, String)
    if (place === undefined) {
      done()
      return
    }
    const { raw } = request
    const admitted = place.guard.admitNow(edgeOf(raw, reply.raw), request, place.overrides)
    if (admitted instanceof Promise)
      whenAdmitted(admitted, (outcome) => settle(outcome, raw, reply, isStacked, done), done as () => void)
    else settle(admitted, raw, reply, isStacked, done)
  }
}

function ownPlace<Request extends FastifyRequest>(request: Request, placeOf: PlaceOf<Request>) {
  const { config, method, url } = request.routeOptions
  return placeOf((config as { rateLimit?: unknown } | undefined)?.rateLimit, () => `${method}:${url}`)
}

function settle(outcome: Outcome, raw: NodeRequest, reply: FastifyReply, isStacked: boolean, done: () => void): void {
  if (outcome.kind === 'GONE') {
    reply.hijack()
    return
  }
  const isRefusal = outcome.kind === 'REFUSE'
  setHeaders(reply, isStacked ? stackedHeaders(outcome.headers, reply, isRefusal) : outcome.headers, isRefusal)
  if (outcome.kind === 'PASS') done()
  else {
    if (isUnread(raw)) reply.header('connection', 'close')
    reply.code(outcome.status)
    // Text would be sent with a charset, which a problem has not.
    reply.send(Buffer.from(outcome.body))
  }
}

/** One by one, in lower case as Fastify keeps them: names that are looked up or made anew would cost more than the decision. */
function setHeaders(reply: FastifyReply, headers: Readonly<Record<string, string>>, isRefusal: boolean): void {
  if (headers['RateLimit-Policy'] !== undefined) reply.header('ratelimit-policy', headers['RateLimit-Policy'])
  if (headers.RateLimit !== undefined) reply.header('ratelimit', headers.RateLimit)
  if (headers['X-RateLimit-Remaining'] !== undefined) {
    reply.header('x-ratelimit-limit', headers['X-RateLimit-Limit'] as string)
    reply.header('x-ratelimit-remaining', headers['X-RateLimit-Remaining'])
    reply.header('x-ratelimit-reset', headers['X-RateLimit-Reset'] as string)
  }
  if (!isRefusal) return
  if (headers['Retry-After'] !== undefined) reply.header('retry-after', headers['Retry-After'])
  reply.header('content-type', headers['Content-Type'] as string)
}
