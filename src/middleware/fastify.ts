import type { Outcome } from '../http/guard.js'
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
  hasHeader(name: string): boolean
  header(name: string, value: string): unknown
  code(status: number): unknown
  send(body: string): unknown
  hijack(): unknown
}

export type FastifyHook<Request> = (request: Request, reply: FastifyReply, done: (error?: Error) => void) => void

/** An `onRequest` hook. Not an async function: Fastify calls those that take `done` without a promise of its own. */
export function fastifyHook<Request extends FastifyRequest>(placeOf: PlaceOf<Request>): FastifyHook<Request> {
  return (request, reply, done) => {
    const route = request.routeOptions
    const limit = (route.config as { rateLimit?: unknown } | undefined)?.rateLimit
    // What is thrown here is the hook's, which Fastify handles.
    const place = placeOf(limit, limit === undefined ? String : () => `${route.method}:${route.url}`)
    if (place === undefined) {
      done()
      return
    }
    const { raw } = request
    const settle = (outcome: Outcome): void => {
      if (outcome.kind === 'GONE') {
        reply.hijack()
        return
      }
      setHeaders(reply, outcome.headers, outcome.kind === 'REFUSE')
      if (outcome.kind === 'PASS') done()
      else {
        if (isUnread(raw)) reply.header('connection', 'close')
        reply.code(outcome.status)
        reply.send(outcome.body)
      }
    }
    place.guard.admitThen(edgeOf(raw, reply.raw), request, place.overrides, settle, done as () => void)
  }
}

/** One by one, in lower case as Fastify keeps them: names that are looked up or made anew would cost more than the decision. */
function setHeaders(reply: FastifyReply, told: Readonly<Record<string, string>>, isRefusal: boolean): void {
  // `hasHeader` looks at one object, `getHeader` also at the response of Node behind it.
  const isFirst = !reply.hasHeader('ratelimit-policy') && !reply.hasHeader('x-ratelimit-remaining')
  const headers = isFirst ? told : stackedHeaders(told, reply, isRefusal)
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
