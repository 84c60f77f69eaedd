import type { Guard } from '../http/guard.js'
import { stackedHeaders } from '../http/stacked-headers.js'
import { fetchEdgeOf, refusalOf, withHeaders } from './fetch-edge.js'
import { edgeOf, isUnread, type NodeRequest, type NodeResponse, setHeaders } from './node-edge.js'

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
    const isNode = incoming !== undefined && outgoing !== undefined
    const edge = isNode ? edgeOf(incoming, outgoing) : fetchEdgeOf(context.req.raw, remoteAddressOf?.(context))
    const admitted = guard.admitNow(edge, context)
    const outcome = admitted instanceof Promise ? await admitted : admitted
    if (outcome.kind !== 'PASS') {
      if (!isNode || outcome.kind === 'GONE') return refusalOf(outcome, edge.method)
      const headers = stackedHeaders(outcome.headers, outgoing, true)
      const closing = isUnread(incoming) ? { Connection: 'close' } : {}
      return refusalOf({ ...outcome, headers: { ...headers, ...closing } }, edge.method)
    }
    if (isNode) {
      // Where the response goes to anyway: Hono's own is written as it is, without a copy for five more headers.
      setHeaders(outgoing, outcome.headers, false)
      await next()
      return
    }
    await next()
    const told = withHeaders(context.res, outcome.headers)
    if (told !== context.res) context.res = told
  }
}
