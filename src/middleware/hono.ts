import type { EdgeRequest } from '../http/edge-request.js'
import type { Guard } from '../http/guard.js'
import { fetchEdgeOf, refusalOf, withHeaders } from './fetch-edge.js'
import { edgeOf, isUnread, type NodeRequest, type NodeResponse } from './node-edge.js'

export interface HonoContext {
  readonly req: { readonly raw: Request }
  readonly env: unknown
  res: Response
}

export type HonoMiddleware<Context extends HonoContext> = (
  context: Context,
  next: () => Promise<void>,
) => Promise<Response | undefined>

/** What `@hono/node-server` hands along. */
interface NodeBindings {
  readonly incoming?: NodeRequest | undefined
  readonly outgoing?: NodeResponse | undefined
  readonly server?: NodeBindings | undefined
}

export function honoMiddleware<Context extends HonoContext>(
  guard: Guard<Context>,
  remoteAddressOf: ((context: Context) => string | undefined) | undefined,
): HonoMiddleware<Context> {
  return async (context, next) => {
    const bindings = (context.env ?? {}) as NodeBindings
    const { incoming, outgoing } = bindings.server ?? bindings
    const edge: EdgeRequest =
      incoming === undefined || outgoing === undefined
        ? fetchEdgeOf(context.req.raw, remoteAddressOf?.(context))
        : edgeOf(incoming, outgoing)
    const outcome = await guard.admit(edge, context)
    if (outcome.kind !== 'PASS') {
      const refusal = refusalOf(outcome, edge.method)
      if (incoming !== undefined && isUnread(incoming)) refusal.headers.set('Connection', 'close')
      return refusal
    }
    await next()
    const told = withHeaders(context.res, outcome.headers)
    if (told !== context.res) context.res = told
  }
}
