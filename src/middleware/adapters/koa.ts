import { type Guard, unlessGone } from '../../http/guard.js'
import { closesUnread, edgeOf, type NodeRequest, type NodeResponse, setHeaders } from '../edge/node-edge.js'

export interface KoaContext {
  readonly req: NodeRequest
  readonly res: NodeResponse
  readonly originalUrl: string
  status: number
  body: unknown
  respond?: boolean | undefined
  set(headers: { [name: string]: string }): unknown
}

export type KoaMiddleware<Context extends KoaContext> = (
  context: Context,
  next: () => Promise<unknown>,
) => Promise<unknown>

export function koaMiddleware<Context extends KoaContext>(guard: Guard<Context>): KoaMiddleware<Context> {
  return async (context, next) => {
    const { req, res, originalUrl } = context
    const edge = edgeOf(req, res, originalUrl)
    const admitted = guard.admit(edge, context)
    const outcome = admitted instanceof Promise ? unlessGone(await admitted, edge.isGone()) : admitted
    if (outcome.kind === 'GONE') {
      context.respond = false
      return
    }
    setHeaders(res, outcome.headers, outcome.kind === 'REFUSE')
    if (outcome.kind === 'PASS') {
      try {
        return await next()
      } catch (error) {
        keepHeaders(error, Object.keys(outcome.headers), res)
        throw error
      }
    }
    if (closesUnread(req)) context.set({ Connection: 'close' })
    context.status = outcome.status
    context.body = outcome.body
  }
}

/** Koa removes all headers from the response to an error, and then sets those of the error. */
function keepHeaders(error: unknown, names: readonly string[], res: NodeResponse): void {
  if (!(error instanceof Error) || !Object.isExtensible(error) || names.length === 0) return
  const told = names.map((name) => [name, res.getHeader(name)] as const)
  const kept = Object.fromEntries(told.filter(([, value]) => value !== undefined))
  const { headers } = error as { headers?: object }
  Object.assign(error, { headers: { ...headers, ...kept } })
}
