import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type RequestOptions, request } from 'node:http'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Config, loadConfig } from '../../src/config/config.js'
import { createGateway, type GatewayChoices, type RunningGateway } from '../../src/program/gateway/create-gateway.js'

export interface Upstream {
  readonly port: number
  readonly url: string
  readonly server: Server
}

/** Any server of this process on a free port, which ends with the test. */
export async function serve(server: Server): Promise<Upstream> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, server }
}

export const upstream = (listener: RequestListener): Promise<Upstream> => serve(createServer(listener))

/** Says what it was asked. */
export const echoUpstream = (): Promise<Upstream> =>
  upstream(async (message, response) => {
    const { method, url, rawHeaders } = message
    const body = await textOf(message)
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ method, url, rawHeaders, body, trailers: message.rawTrailers }))
  })

export interface Echo {
  readonly method: string
  readonly url: string
  readonly rawHeaders: string[]
  readonly body: string
  readonly trailers: string[]
}

/** All values of a header that an upstream was sent. */
export const sent = ({ rawHeaders }: Echo, name: string): string[] =>
  rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name.toLowerCase())

export interface GatewaySetup {
  readonly routes?: unknown
  readonly gateway?: object
  readonly ratelimit?: object
  readonly waitForRefill?: object
  /** A document of rules; without one there is no file. */
  readonly rules?: unknown
  readonly choices?: GatewayChoices
}

export interface TestGateway {
  readonly port: number
  readonly url: string
  readonly running: RunningGateway
  readonly config: Config
  readonly rulesFile: string
}

/** A gateway in this process on a free port, by a configuration file as users write it. */
export async function gatewayWith(setup: GatewaySetup): Promise<TestGateway> {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-gateway-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const { routes = [], gateway, ratelimit = {}, waitForRefill = {}, rules } = setup
  const document = { gateway: { drainTimeout: '0s', ...gateway, routes }, ratelimit, waitForRefill }
  writeFileSync(join(directory, 'fluxgate.json'), JSON.stringify(document))
  const rulesFile = join(directory, 'rules.yaml')
  if (rules !== undefined) writeFileSync(rulesFile, JSON.stringify(rules))
  const config = await loadConfig({ path: 'fluxgate.json', env: {}, cwd: directory })
  const running = await createGateway(config, setup.choices)
  running.server.listen(0, '127.0.0.1')
  await once(running.server, 'listening')
  onTestFinished(() => running.close())
  const { port } = running.server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, running, config, rulesFile }
}

/** A gateway with one route, to one upstream, for everything. */
export const gatewayTo = ({ url }: Upstream, setup: Omit<GatewaySetup, 'routes'> = {}): Promise<TestGateway> =>
  gatewayWith({ ...setup, routes: [{ id: 'all', uri: url }] })

export interface Answered {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly rawHeaders: string[]
  readonly body: string
  readonly trailers: IncomingMessage['trailers']
}

/** One request on a connection of its own, with whatever body is given. */
export async function ask(url: string, options: RequestOptions & { body?: string | Buffer } = {}): Promise<Answered> {
  const { body, ...rest } = options
  const outgoing = request(url, { agent: false, ...rest })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return answerOf(response)
}

/** The statuses of requests that follow each other. */
export async function statuses(url: string, count: number, options: Parameters<typeof ask>[1] = {}): Promise<number[]> {
  const result: number[] = []
  for (let i = 0; i < count; i++) result.push((await ask(url, options)).status)
  return result
}

export async function answerOf(response: IncomingMessage): Promise<Answered> {
  const body = await textOf(response)
  const { statusCode = 0, headers, rawHeaders, trailers } = response
  return { status: statusCode, headers, rawHeaders, body, trailers }
}

export async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Bytes in, bytes out: what a gateway answers to exactly this, until it closes or has said `enough`. */
export async function raw(port: number, text: string, enough?: (said: string) => boolean): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let said = ''
  socket.setEncoding('latin1').on('data', (data: string) => {
    said += data
    if (enough?.(said)) socket.destroy()
  })
  socket.on('error', () => {})
  socket.write(Buffer.from(text, 'latin1'))
  await once(socket, 'close')
  return said
}

export interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
}

export function deferred<T = void>(): Deferred<T> {
  let settle: (value: T) => void = () => {}
  const promise = new Promise<T>((resolve) => {
    settle = resolve
  })
  return { promise, resolve: (value) => settle(value) }
}
