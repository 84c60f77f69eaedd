/** A server of any framework for one test, and a client with its own socket. */
import { type ClientRequest, createServer, type IncomingHttpHeaders, type RequestListener, request } from 'node:http'
import { onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { createFluxGate, type FluxGateOptions, type RuleInput } from '../../../src/index.js'
import type { RateLimitOptions } from '../../../src/middleware/limits/create-guard.js'
import { type Adapter, type Application, portOf, type Served } from './adapters.js'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Question {
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string
  readonly localAddress?: string
}

export interface Bed extends Served {
  readonly application: Application
  readonly port: number
  ask(question?: Question): Promise<Answer>
  /** Sends a request; the test handles the rest. */
  begin(question?: Question): { readonly request: ClientRequest; readonly answer: Promise<Answer> }
}

/** Returns the address of a server for one test. */
export async function served(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${portOf(server)}`
}

export async function startBed(
  adapter: Adapter,
  limits: readonly RateLimitOptions[],
  answer: Application['answer'] = () => 'hello',
): Promise<Bed> {
  const application: Application = { calls: 0, errors: [], decisions: [], answer }
  const served = await adapter.serve(limits, application)
  const port = portOf(served.server)
  onTestFinished(async () => {
    const closed = served.closeLimits()
    served.server.closeAllConnections()
    served.server.close()
    await closed
  })
  const begin = (question: Question = {}) => beginAt(port, question)
  return { ...served, application, port, begin, ask: (question) => begin(question).answer }
}

export function beginAt(port: number, { path = '/', method = 'GET', headers = {}, body, localAddress }: Question) {
  const options = { host: '127.0.0.1', port, path, method, headers, agent: false as const }
  const asked = request({ ...options, ...(localAddress !== undefined && { localAddress }) })
  const answer = new Promise<Answer>((resolve, reject) => {
    asked.once('error', reject)
    asked.once('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      response.once('error', reject)
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
  })
  // A client that aborts does not read the response.
  answer.catch(() => {})
  asked.end(body)
  return { request: asked, answer }
}

/** A gate with one rule, so that a test can see waiting requests and remaining permits. */
export async function gateOf(rule: Omit<RuleInput, 'id'>, options: Partial<FluxGateOptions> = {}) {
  const gate = await createFluxGate({ rules: { id: 'api', rules: [{ id: 'rule', ...rule }] }, ...options })
  onTestFinished(() => gate.close())
  return gate
}

/** A store that is always unreachable. */
export const downStore: BucketStore = {
  charge: async () => {
    throw new Error('connection refused')
  },
  refund: async () => {
    throw new Error('connection refused')
  },
  reset: async () => {
    throw new Error('connection refused')
  },
  close: async () => {},
}

/** Returns the rate limit headers only. */
export function limitsIn(headers: IncomingHttpHeaders): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => /^(x-)?ratelimit|^retry-after$/.test(name)))
}
