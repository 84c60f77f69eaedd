import type { Place, PlaceOf } from '../http/place.js'
import { stackedHeaders } from '../http/stacked-headers.js'
import { edgeOf, isUnread, type NodeRequest, type NodeResponse } from './node-edge.js'

export interface FastifyRequest {
  readonly raw: NodeRequest
  readonly originalUrl: string
  readonly routeOptions: {
    readonly config?: object | undefined
    readonly method?: string | string[] | undefined
    readonly url?: string | undefined
  }
}

export interface FastifyReply {
  readonly raw: NodeResponse
  getHeader(name: string): unknown
  headers(headers: Record<string, string>): unknown
  code(status: number): unknown
  send(body: string): unknown
  hijack(): unknown
}

export type FastifyHook<Request> = (request: Request, reply: FastifyReply, done: (error?: Error) => void) => void

/** An `onRequest` hook. Not an async function: Fastify calls those that take `done` without a promise of its own. */
export function fastifyHook<Request extends FastifyRequest>(placeOf: PlaceOf<Request>): FastifyHook<Request> {
  return (request, reply, done) => {
    let place: Place<Request> | undefined
    try {
      const { config, method, url } = request.routeOptions
      place = placeOf((config as { rateLimit?: unknown } | undefined)?.rateLimit, () => `${method}:${url}`)
    } catch (error) {
      done(error as Error)
      return
    }
    if (place === undefined) {
      done()
      return
    }
    const { raw, originalUrl } = request
    place.guard.admit(edgeOf(raw, reply.raw, originalUrl), request, place.overrides).then((outcome) => {
      if (outcome.kind === 'GONE') return void reply.hijack()
      reply.headers(stackedHeaders(outcome.headers, (name) => reply.getHeader(name), outcome.kind === 'REFUSE'))
      if (outcome.kind === 'PASS') return done()
      if (isUnread(raw)) reply.headers({ Connection: 'close' })
      reply.code(outcome.status)
      reply.send(outcome.body)
    }, done)
  }
}
