import type { Config } from '../../config/config.js'
import type { FluxGateServer } from '../../program/create-server.js'
import { rateLimitHost, rateLimitServerOf } from '../../program/rate-limit-server.js'
import type { ServedParts } from '../../program/server.js'
import { type ListenAddress, type Listening, type ListenProblem, listenAt, listenOn, urlOf } from './listen.js'

export interface ApiUrls {
  readonly api: string
  /** URL of Envoy's rate limit service; null if none runs. */
  readonly grpc: string | null
}

/** The ports of the API and, if it is configured, of Envoy's rate limit service. */
export interface ApiListener {
  /** Resolves with the URLs, or with the reason why a port is unavailable. Rejects if the configuration forbids an address. */
  start(): Promise<ApiUrls | ListenProblem>
  close(): Promise<void>
}

export interface ApiListenerOptions {
  readonly address: ListenAddress
  readonly drainTimeout: number
  /** Options of Envoy's service. Without them, it never runs. */
  readonly grpc?: GrpcOptions | undefined
}

interface GrpcOptions {
  readonly host?: string | undefined
  readonly grpcPort?: number | undefined
}

export function apiListener(
  config: Config,
  server: FluxGateServer,
  parts: Pick<ServedParts, 'gate' | 'log'>,
  { address, drainTimeout, grpc }: ApiListenerOptions,
): ApiListener {
  let proxies: RateLimitListener | undefined
  return {
    async start() {
      const api = await listenOn(server, address)
      if ('problem' in api) return api
      proxies = grpc && (await listenForProxies(config, parts, grpc))
      const listening = proxies?.listening ?? { url: null }
      return 'problem' in listening ? listening : { api: api.url, grpc: listening.url }
    },
    close: async () => void (await Promise.all([server.close(drainTimeout), proxies?.close()])),
  }
}

interface RateLimitListener {
  readonly listening: Listening
  close(): Promise<void>
}

/** Listens with Envoy's rate limit service; undefined if it is not configured. */
async function listenForProxies(
  config: Config,
  parts: Pick<ServedParts, 'gate' | 'log'>,
  options: GrpcOptions,
): Promise<RateLimitListener | undefined> {
  const port = options.grpcPort ?? config.server.grpcPort
  if (port === undefined) return undefined
  const host = rateLimitHost(config, options.host ?? config.server.host)
  const server = rateLimitServerOf(config, parts)
  const listening = await listenAt({ host, port, listener: 'SERVER_GRPC', option: '--grpc-port' }, async () =>
    urlOf(await server.listen({ host, port }), server.isSecure),
  )
  return { listening, close: () => server.close(config.server.drainTimeout) }
}
