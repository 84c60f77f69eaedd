import type { Config } from '../../config/config.js'
import { rateLimitHost, rateLimitServerOf } from '../../program/rate-limit-server.js'
import type { ServedParts } from '../../program/server.js'
import { type Listening, listenAt, urlOf } from './listen.js'

/** Envoy's rate limit service, if it is configured. */
export interface RateLimitListener {
  /** Its URL, null if it is not configured, or the reason why its port is unavailable. */
  readonly listening: Listening | { readonly url: null }
  close(): Promise<void>
}

/** Listens with the rate limit service. Rejects if the configuration forbids the address. */
export async function listenForProxies(
  config: Config,
  parts: Pick<ServedParts, 'gate' | 'log'>,
  options: { readonly host?: string | undefined; readonly grpcPort?: number | undefined },
): Promise<RateLimitListener> {
  const port = options.grpcPort ?? config.server.grpcPort
  if (port === undefined) return { listening: { url: null }, close: async () => {} }
  const host = rateLimitHost(config, options.host ?? config.server.host)
  const server = rateLimitServerOf(config, parts)
  const listening = await listenAt({ host, port, listener: 'SERVER_GRPC', option: '--grpc-port' }, async () =>
    urlOf(await server.listen({ host, port }), server.isSecure),
  )
  return { listening, close: () => server.close(config.server.drainTimeout) }
}
