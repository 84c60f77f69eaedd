import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/core/clock.js'
import { createFluxGate, openGate } from '../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../src/gate/flux-gate.js'
import type { FluxGateOptions } from '../../src/gate/options.js'
import { createServer, type FluxGateServer, type ServerOptions } from '../../src/program/create-server.js'
import { fileRuleStore } from '../../src/rules/file/file-rule-store.js'
import { DecisionRecorder } from '../../src/telemetry/decision-recorder.js'
import { showKey } from '../../src/telemetry/key-digest.js'
import { LocalStatistics } from '../../src/telemetry/statistics/local-statistics.js'
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

/** Two rule sets in a file, as people write it. */
const rulesFile = `# What the shop allows.
ruleSets:
  - id: shop
    description: the shop
    rules:
      - id: per-address
        path: /shop/**
        overrides: true
        bands: [{ label: minute, capacity: 5, window: 1m }]
        attributes: { owner: ann }
      - id: global
        limitScope: GLOBAL
        mode: SHADOW
        bands: [{ label: hour, capacity: 100, window: 1h }]
  - id: other
    strategy: first
    rules: []
`

/** A server with everything that it can have: rules in a file, statistics, metrics. Real time, because events have it. */
export async function wholeServer(options: Partial<ServerOptions> = {}): Promise<WholeServer> {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-server-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const path = join(directory, 'rules.yaml')
  writeFileSync(path, rulesFile)
  const rules = fileRuleStore(path)
  const recorder = new DecisionRecorder(systemClock)
  const gate = await openGate({ rules }, { observer: recorder })
  const keys = showKey(options.revealKeys ?? false)
  const statistics = new LocalStatistics({ recorder, clock: systemClock, showKey: keys })
  const metrics = () => `# HELP fluxgate_up Whether it is.\n# TYPE fluxgate_up gauge\nfluxgate_up 1\n`
  const lines: object[] = []
  const log = (message: string, fields?: object) => lines.push({ message, ...fields })
  const logger = { info: log, warn: log, error: log }
  const server = createServer({ gate, rules, statistics, metrics, logger, ...options })
  onTestFinished(async () => {
    await server.close(0)
    await gate.close()
    await rules.close()
  })
  const { url, port } = await server.listen({ port: 0 })
  return { url, port, gate, server, lines, path, ask: askOf(url) }
}

export interface WholeServer extends Omit<TestServer, 'clock'> {
  /** What it has logged. */
  readonly lines: readonly object[]
  /** Of the rules file. */
  readonly path: string
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
