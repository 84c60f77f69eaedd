import type { AddressInfo } from 'node:net'
import type { HeaderChoice } from '../http/header-dialects.js'
import { RateLimitHeaders } from '../http/rate-limit-headers.js'
import { type GrpcLimits, GrpcServer, type GrpcServerOptions } from './grpc/grpc-server.js'
import { HealthService } from './grpc/health.js'
import type { Method } from './grpc/method.js'
import { type RateLimitGate, RateLimitService } from './ratelimit/rate-limit-service.js'
import { reflectionMethods } from './reflection/reflection-service.js'

export interface RateLimitServerOptions extends Pick<GrpcServerOptions, 'tls' | 'onError'> {
  readonly gate: RateLimitGate
  /** The headers that Envoy adds to responses. */
  readonly headers: HeaderChoice
  /** Throws if the value of `authorization` is not valid for the rate limit service. Default: no authorization. */
  readonly authorize?: ((authorization: string | undefined) => void) | undefined
  readonly limits?: Partial<GrpcLimits>
}

const serviceName = 'envoy.service.ratelimit.v3.RateLimitService'
const decidePath = `/${serviceName}/ShouldRateLimit`

/** Envoy's rate limit service over gRPC, with health checks and reflection, which need no authorization. */
export class RateLimitServer {
  readonly #server: GrpcServer
  readonly #health = new HealthService(['ratelimit', serviceName])

  constructor({ gate, headers, authorize, ...options }: RateLimitServerOptions) {
    const service = new RateLimitService({ gate, headers: new RateLimitHeaders(headers) })
    const decide: Method = { kind: 'UNARY', handle: (message, call) => service.shouldRateLimit(message, call) }
    const methods = new Map<string, Method>([[decidePath, decide], ...this.#health.methods, ...reflectionMethods])
    this.#server = new GrpcServer({
      ...options,
      methods,
      ...(authorize && {
        authorize(path: string, authorization: string | undefined) {
          if (path === decidePath) authorize(authorization)
        },
      }),
    })
  }

  get isSecure(): boolean {
    return this.#server.isSecure
  }

  /** Resolves with the address and port. Port 0 picks a free port. */
  listen(where: { readonly host: string; readonly port: number }): Promise<AddressInfo> {
    return this.#server.listen(where)
  }

  /** Health checks fail from now on, and clients are asked to connect elsewhere. Calls are still answered. */
  drain(): void {
    this.#health.stopServing()
    this.#server.drain()
    this.#health.close()
  }

  /** Drains, stops listening, and waits at most `graceMs` for calls in flight. Does not close the gate. */
  async close(graceMs: number): Promise<void> {
    this.drain()
    await this.#server.close(graceMs)
  }
}
