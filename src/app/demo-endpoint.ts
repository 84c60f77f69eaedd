import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type Clock, systemClock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { canonicalIp } from '../core/ip-address.js'
import type { RequestContext } from '../core/request-context.js'
import { rateLimitHeaders } from '../http/headers.js'
import { hold } from '../http/hold.js'
import { problemMediaType, refusalProblem } from '../http/problem.js'
import type { FluxGate } from './gate.js'

/** An endpoint to try rules on: it greets on every path, as often as the gate allows. */
export function demoEndpoint(gate: FluxGate, clock: Clock = systemClock): Server {
  const server = createServer((request, response) => {
    // A server that is stopping finishes what it has begun, and keeps no connection for more.
    if (!server.listening) response.setHeader('Connection', 'close')
    answer(gate, clock, request, response).catch((error: unknown) => fail(response, error))
  })
  return server
}

async function answer(gate: FluxGate, clock: Clock, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const leaving = new AbortController()
  response.once('close', () => leaving.abort())
  const context = contextOf(request)
  const decision = await gate.check(context, { signal: leaving.signal })
  if (!(await hold(decision.delayMs, leaving.signal, clock))) return
  for (const [name, value] of Object.entries(rateLimitHeaders(decision, 'both', clock.now())))
    response.setHeader(name, value)
  if (decision.allowed) return send(response, 200, 'application/json', greeting(context, decision))
  const problem = refusalProblem(decision)
  send(response, problem.status, problemMediaType, problem)
}

function contextOf({ socket, headers, method, url = '/' }: IncomingMessage): RequestContext {
  return {
    clientIp: canonicalIp(socket.remoteAddress ?? ''),
    userId: textOf(headers['x-user-id']),
    apiKey: textOf(headers['x-api-key']),
    method,
    path: pathOf(url),
    headers,
  }
}

const textOf = (value: string | string[] | undefined): string | undefined => String(value ?? '').trim() || undefined

/** Without the query; a proxy's client may also send `http://host` before it. */
const pathOf = (url: string): string => url.replace(/^[a-z]+:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '') || '/'

function greeting({ userId, clientIp, path }: RequestContext, { remaining, delayMs }: Decision) {
  return { hello: userId ?? clientIp ?? 'you', path, remaining, ...(delayMs > 0 && { heldMs: delayMs }) }
}

function send(response: ServerResponse, status: number, type: string, body: unknown): void {
  response.writeHead(status, { 'Content-Type': type })
  response.end(`${JSON.stringify(body)}\n`)
}

/** What went wrong is for whoever runs this, not for whoever asks. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.destroyed || response.headersSent) return
  process.emitWarning(error instanceof Error ? error : String(error))
  const title = 'The request could not be decided'
  send(response, 500, problemMediaType, { type: 'about:blank', title, status: 500 })
}
