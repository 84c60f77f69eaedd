import type { Guard, Outcome } from '../http/guard.js'
import { stackedHeaders } from '../http/stacked-headers.js'
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

const noBindings: NodeBindings = {}

export function honoMiddleware<Context extends HonoContext>(
  guard: Guard<Context>,
  remoteAddressOf: ((context: Context) => string | undefined) | undefined,
): HonoMiddleware<Context> {
  return (context, next) => {
    const bindings = (context.env ?? noBindings) as NodeBindings
    const { incoming, outgoing } = bindings.server ?? bindings
    if (incoming === undefined || outgoing === undefined)
      return throughFetch(guard, remoteAddressOf?.(context), context, next)
    const admitted = guard.admitNow(edgeOf(incoming, outgoing), context)
    if (!(admitted instanceof Promise)) return settle(admitted, incoming, outgoing, next)
    return admitted.then((outcome) => settle(outcome, incoming, outgoing, next))
  }
}

/** As `fetch` spells headers. Node would make these texts anew for every request, which costs more than the decision. */
const lowerCase: Readonly<Record<string, string>> = {
  'RateLimit-Policy': 'ratelimit-policy',
  RateLimit: 'ratelimit',
  'X-RateLimit-Limit': 'x-ratelimit-limit',
  'X-RateLimit-Remaining': 'x-ratelimit-remaining',
  'X-RateLimit-Reset': 'x-ratelimit-reset',
}

/** Headers go where the response goes to anyway: Hono's own is written as it is, without a copy for five more. */
async function settle(outcome: Outcome, incoming: NodeRequest, outgoing: NodeResponse, next: () => Promise<void>) {
  if (outcome.kind === 'PASS') {
    const headers = stackedHeaders(outcome.headers, outgoing, false)
    for (const name in headers) outgoing.setHeader(lowerCase[name] ?? name, headers[name] as string)
    await next()
    return undefined
  }
  const method = incoming.method ?? 'GET'
  if (outcome.kind === 'GONE') return refusalOf(outcome, method)
  const headers = stackedHeaders(outcome.headers, outgoing, true)
  const closing = isUnread(incoming) ? { Connection: 'close' } : {}
  return refusalOf({ ...outcome, headers: { ...headers, ...closing } }, method)
}

async function throughFetch<Context extends HonoContext>(
  guard: Guard<Context>,
  remoteAddress: string | undefined,
  context: Context,
  next: () => Promise<void>,
) {
  const edge = fetchEdgeOf(context.req.raw, remoteAddress)
  const outcome = await guard.admit(edge, context)
  if (outcome.kind !== 'PASS') return refusalOf(outcome, edge.method)
  await next()
  const told = withHeaders(context.res, outcome.headers)
  if (told !== context.res) context.res = told
  return undefined
}
