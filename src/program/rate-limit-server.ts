import type { Config } from '../config/config.js'
import { FluxGateError, messageOf } from '../core/errors.js'
import { GrpcError } from '../envoy/grpc/status.js'
import { RateLimitServer } from '../envoy/rate-limit-server.js'
import { isLoopback } from '../server/request/loopback.js'
import { Tokens } from '../server/request/tokens.js'
import type { ServedParts } from './server.js'
import { readTlsPair } from './tls-pair.js'

/** Creates Envoy's rate limit service of a configuration. */
export function rateLimitServerOf(config: Config, { gate, log }: Pick<ServedParts, 'gate' | 'log'>): RateLimitServer {
  const { adminToken, checkToken, tlsCert, tlsKey, grpcAuthentication, grpcMaxConnectionAge } = config.server
  const tokens = new Tokens({ adminToken, checkToken })
  const tls = tlsCert !== undefined && tlsKey !== undefined ? { cert: tlsCert, key: tlsKey } : undefined
  return new RateLimitServer({
    gate,
    headers: config.ratelimit.headers,
    tls: tls && readTlsPair('server.tls', tls),
    limits: { maxConnectionAgeMs: grpcMaxConnectionAge },
    onError: (error) => log.error('rate limit call failed', { error: messageOf(error) }),
    ...(grpcAuthentication === 'TOKEN' && {
      authorize(authorization: string | undefined) {
        if (tokens.find(authorization, 'CHECK') !== undefined) return
        throw new GrpcError(
          'UNAUTHENTICATED',
          'The rate limit service requires a token. Send it as initial_metadata: authorization: Bearer <token>.',
        )
      },
    }),
  })
}

/**
 * The address that the service listens on. Rejects one that other machines can reach if every client may decide, unless this is
 * configured.
 */
export function rateLimitHost({ server }: Config, host: string): string {
  const { adminToken, checkToken, grpcAuthentication, grpcHost = host } = server
  const isOpen = !adminToken && !checkToken
  if (isOpen && grpcAuthentication === 'TOKEN' && !isLoopback(grpcHost)) throw missingToken(grpcHost)
  return grpcHost
}

function missingToken(host: string): FluxGateError {
  const message = `The rate limit service cannot listen on ${host} without a token, because anyone could use up limits. Set server.checkToken (or FLUXGATE_CHECK_TOKEN) and send it from Envoy as initial_metadata, set server.grpcAuthentication: NONE if only proxies can connect, or set server.grpcHost: 127.0.0.1.`
  return new FluxGateError('FLUXGATE_CONFIG_INVALID', message, {
    errors: [{ path: 'server.grpcHost', message: `must be a loopback address without a token; received ${host}` }],
  })
}
