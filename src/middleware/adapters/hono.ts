import { type Guard, type Outcome, unlessGone } from '../../http/guard.js'
import { stackedHeaders } from '../../http/headers/stacked-headers.js'
import { fetchEdgeOf, rejectionResponse, withHeaders } from '../edge/fetch-edge.js'
import { closesUnread, edgeOf, type NodeEdge, type NodeRequest, type NodeResponse } from '../edge/node-edge.js'

export interface HonoContext {
  readonly req: { readonly raw: Request }
  readonly env: unknown
  res: Response
}

type Next = () => Promise<void>

export type HonoMiddleware<Context extends HonoContext> = (
  context: Context,
  next: Next,
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
    const edge = edgeOf(incoming, outgoing)
    const admitted = guard.admit(edge, context)
    return admitted instanceof Promise ? settleLater(admitted, edge, next) : settle(admitted, incoming, outgoing, next)
  }
}

const settleLater = async (admitted: Promise<Outcome>, edge: NodeEdge, next: Next) =>
  settle(unlessGone(await admitted, edge.isGone()), edge.request, edge.response, next)

/** As `fetch` spells headers. Node would make these texts anew for every request, which costs more than the decision. */
const lowerCase: Readonly<Record<string, string>> = {
  'RateLimit-Policy': 'ratelimit-policy',
  RateLimit: 'ratelimit',
  'X-RateLimit-Limit': 'x-ratelimit-limit',
  'X-RateLimit-Remaining': 'x-ratelimit-remaining',
  'X-RateLimit-Reset': 'x-ratelimit-reset',
}

/** Headers go where the response goes to anyway: Hono's own is written as it is, without a copy for five more. */
function settle(
  outcome: Outcome,
  incoming: NodeRequest,
  outgoing: NodeResponse,
  next: Next,
): Promise<Response | undefined> {
  if (outcome.kind !== 'PASS') return Promise.resolve(answerOf(outcome, incoming, outgoing))
  const headers = stackedHeaders(outcome.headers, outgoing, false)
  for (const name in headers) outgoing.setHeader(lowerCase[name] ?? name, headers[name] as string)
  return next().then(nothing)
}

/** What the rest of the application returns is its own. */
const nothing = (): undefined => undefined

function answerOf(
  outcome: Exclude<Outcome, { kind: 'PASS' }>,
  incoming: NodeRequest,
  outgoing: NodeResponse,
): Response {
  const method = incoming.method ?? 'GET'
  if (outcome.kind === 'GONE') return alreadySent()
  const headers = stackedHeaders(outcome.headers, outgoing, true)
  const closing = closesUnread(incoming) ? { Connection: 'close' } : {}
  return rejectionResponse({ ...outcome, headers: { ...headers, ...closing } }, method)
}

/** `@hono/node-server` writes nothing for it. It must be a native Response, which `clone` returns: its own are written. */
const alreadySent = (): Response => new Response(null, { headers: { 'x-hono-already-sent': 'true' } }).clone()

async function throughFetch<Context extends HonoContext>(
  guard: Guard<Context>,
  remoteAddress: string | undefined,
  context: Context,
  next: Next,
) {
  const edge = fetchEdgeOf(context.req.raw, remoteAddress)
  const outcome = unlessGone(await guard.admit(edge, context), context.req.raw.signal.aborted)
  if (outcome.kind !== 'PASS') return rejectionResponse(outcome, edge.method)
  await next()
  const told = withHeaders(context.res, outcome.headers)
  if (told !== context.res) context.res = told
  return undefined
}
