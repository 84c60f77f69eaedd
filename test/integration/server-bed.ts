import { onTestFinished } from 'vitest'
import { createFluxGate } from '../../src/app/create-flux-gate.js'
import { createServer, type FluxGateServer, type ServerOptions } from '../../src/app/create-server.js'
import type { FluxGate } from '../../src/app/gate.js'
import type { FluxGateOptions } from '../../src/app/gate-options.js'
import { manualClock } from '../../src/testing/manual-clock.js'

export interface ServerSetup extends Partial<ServerOptions> {
  /** Rules as objects, where there is no rule store. */
  readonly ruleSets?: FluxGateOptions['rules']
  readonly gateOptions?: Partial<FluxGateOptions>
}

export interface TestServer {
  readonly url: string
  readonly port: number
  readonly gate: FluxGate
  readonly server: FluxGateServer
  readonly clock: ReturnType<typeof manualClock>
  /** Sends JSON, and reads JSON where there is some. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Told>
}

export interface Told {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests compare it with what it has to be
  readonly body: any
}

/** Two an hour for each address, under /login; ten for each user, everywhere else. */
export const someRules = {
  id: 'api',
  rules: [
    { id: 'login', path: '/login', bands: [{ label: 'hour', capacity: 2, window: '1h' }] },
    { id: 'users', path: '/users/**', limitScope: 'USER_ID', bands: [{ label: 'minute', capacity: 10, window: '1m' }] },
  ],
} as const

/** A server in this process on a free port, with a gate whose time stands still; both end with the test. */
export async function serverWith(setup: ServerSetup = {}): Promise<TestServer> {
  const clock = manualClock(1_700_000_000_000)
  const { ruleSets = someRules, gateOptions, ...options } = setup
  const gate = setup.gate ?? (await createFluxGate({ rules: options.rules ?? ruleSets, clock, ...gateOptions }))
  const server = createServer({ ...options, gate })
  onTestFinished(async () => {
    await server.close(0)
    await gate.close()
  })
  const { url, port } = await server.listen({ port: 0 })
  return { url, port, gate, server, clock, ask: askOf(url) }
}

export const askOf = (url: string) =>
  async function ask(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Told> {
    const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...type, ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('content-type') ?? '') && text !== ''
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
  }
