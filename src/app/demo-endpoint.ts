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
  const server = createServer(async (request, response) => {
    try {
      const answer = await answerTo(request, response, gate, clock)
      // A server that is stopping finishes what it has begun, and keeps no connection for more.
      if (answer !== undefined) send(response, answer, server.listening)
    } catch (error) {
      fail(response, error)
    }
  })
  return server
}

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** Undefined if nobody waits for it any more. */
async function answerTo(
  request: IncomingMessage,
  response: ServerResponse,
  gate: FluxGate,
  clock: Clock,
): Promise<Answer | undefined> {
  const leaving = new AbortController()
  response.once('close', () => leaving.abort())
  const context = contextOf(request)
  const decision = await gate.check(context, { signal: leaving.signal })
  if (!(await hold(decision.delayMs, leaving.signal, clock))) return undefined
  const headers = rateLimitHeaders(decision, 'both', clock.now())
  if (decision.allowed)
    return {
      status: 200,
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: greeting(context, decision),
    }
  const problem = refusalProblem(decision)
  return { status: problem.status, headers: { ...headers, 'Content-Type': problemMediaType }, body: problem }
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

function send(response: ServerResponse, { status, headers, body }: Answer, keepAlive: boolean): void {
  const text = `${JSON.stringify(body)}\n`
  const connection = keepAlive ? {} : { Connection: 'close' }
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(text), ...connection })
  response.end(text)
}

/** What went wrong is for whoever runs this, not for whoever asks. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.destroyed || response.headersSent) return
  process.emitWarning(error instanceof Error ? error : String(error))
  const body = { type: 'about:blank', title: 'The request could not be decided', status: 500 }
  send(response, { status: 500, headers: { 'Content-Type': problemMediaType }, body }, false)
}
