/** Entry `fluxgate-js/nest`: guard, module and decorators for NestJS. */
import { refundIfAborted } from '../http/guard.js'
import { mergeHeaders } from '../http/rate-limit-headers.js'
import {
  closesConnection,
  countResponse,
  frameworkIp,
  NodeEdge,
  type NodeRequest,
  type NodeResponse,
} from './edge/node-edge.js'
import type { RateLimitOptions } from './limits/create-guard.js'
import { type RouteLimit, RouteLimits } from './limits/route-limits.js'
import { setDecision } from './nest/limit-decision.js'
import { limitOf, type RateLimitDecorator, setLimit } from './nest/limit-metadata.js'
import { type CountedRequest, limitUnguarded, type NestHttpAdapter } from './nest/unguarded-requests.js'

export type { ContextCustomizer, CountedResponse, RejectionMessage } from '../http/guard-options.js'
export { RateLimitDecision } from './nest/limit-decision.js'
export type {
  NestContext,
  NestHttpAdapter,
  NestRequest,
  NestResponse,
  PlaceDecorator,
  RateLimitAsyncOptions,
  RateLimitDecorator,
  RateLimitOptions,
  RouteLimit,
}

/** @deprecated Use `RateLimitDecorator`. */
type PlaceDecorator = RateLimitDecorator

/** The part of Nest's `ExecutionContext` that is used. */
interface NestContext {
  getType(): string
  getHandler(): { readonly name: string }
  getClass(): { readonly name: string }
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown }
}

/** A request of Express, or of Fastify with Node's request in `raw`. */
type NestRequest = NodeRequest & { readonly raw?: NodeRequest }

type NestResponse = NodeResponse & {
  readonly raw?: NodeResponse
  /** Fastify: true if the reply was sent or hijacked. */
  readonly sent?: boolean
  header(name: string, value: string): unknown
  /** Fastify only. */
  code?(status: number): unknown
}

/**
 * Decorator that sets the limit of a controller or method: another rule set, another number of permits, or an inline rule as in
 * `@RateLimit({ capacity: 5, window: '1m' })`.
 */
export const RateLimit = <Native extends NestRequest = NestRequest>(
  limit: Exclude<RouteLimit<Native>, false>,
): RateLimitDecorator => setLimit(limit)

/** Decorator that exempts a controller or method from rate limiting. */
export const SkipRateLimit = (): RateLimitDecorator => setLimit(false)

/** Guard that limits requests. Throws an `HttpException` with a problem document for rejected ones, so that filters see it. */
export class RateLimitGuard<Native extends NestRequest = NestRequest, Reply extends object = NestResponse> {
  readonly #limits: RouteLimits<Native, Reply>
  readonly #countedBy = Symbol('fluxgate.countedBy')

  constructor(options: RateLimitOptions<Native, Reply>) {
    this.#limits = new RouteLimits(options)
  }

  /** Called by Nest for every request. */
  async canActivate(context: NestContext): Promise<boolean> {
    if (context.getType() !== 'http') return true
    const { limit, scopeOf } = limitOf(context.getHandler(), context.getClass())
    const routeGuard = this.#limits.guardOf(limit, scopeOf)
    const request = context.switchToHttp().getRequest() as Native
    const raw = (request.raw ?? request) as CountedRequest
    const isCounted = routeGuard !== undefined && raw[this.#countedBy] === routeGuard
    raw[this.#countedBy] = routeGuard ?? false
    if (routeGuard === undefined || isCounted) return true
    const { guard, overrides } = routeGuard
    const response = context.switchToHttp().getResponse() as NestResponse
    const edge = new NodeEdge(raw, response.raw ?? response, frameworkIp(guard, request), request.originalUrl)
    const admitted = await guard.admit(edge, request, overrides)
    const outcome = refundIfAborted(admitted, response.sent === true || edge.isAborted())
    if (outcome.kind === 'ABORTED') return unanswered()
    const headers = mergeHeaders(outcome.headers, response, outcome.kind === 'REJECTED')
    for (const name in headers) if (name !== 'Content-Type') response.header(name, headers[name] as string)
    if (outcome.decision !== undefined) setDecision(raw, outcome.decision)
    if (outcome.kind === 'ALLOWED') {
      if (guard.countsByResponse) countResponse(guard, request, outcome, edge.response)
      return true
    }
    if (closesConnection(raw)) response.header('Connection', 'close')
    const { decision, content, status } = outcome
    if (guard.onRejected !== undefined && decision !== undefined) {
      setStatus(response, status)
      await guard.onRejected(decision, request, response as unknown as Reply)
      return unanswered()
    }
    // Nest sends the content as JSON, also if it is a string.
    if (typeof content === 'object') response.header('Content-Type', outcome.headers['Content-Type'] as string)
    // Exception filters test for Nest's own class. Imported on demand, so that this entry loads without Nest.
    const { HttpException } = await import('@nestjs/common')
    throw new HttpException(content, status)
  }

  /**
   * Also limits requests that never reach a guard: those without a matching route, and preflight requests answered by
   * `enableCors`. `RateLimitModule` calls this. Without the module, call it with `app.getHttpAdapter()` before
   * `app.enableCors()`.
   */
  limitUnguarded(adapter: NestHttpAdapter): void {
    limitUnguarded(adapter, { main: this.#limits.main, countedBy: this.#countedBy })
  }

  /** Called by Nest before it waits for requests in flight. */
  onModuleDestroy(): Promise<void> {
    return this.close()
  }

  /** Rejects delayed requests with 503 and closes the store if the guard opened it. */
  close(): Promise<void> {
    return this.#limits.close()
  }
}

/** Ends the handling of a request. One promise per request: a shared one would keep all of them in memory. */
const unanswered = (): Promise<boolean> => new Promise(() => {})

/** Fastify takes the status in `code`, Express in `statusCode`. */
function setStatus(response: NestResponse, status: number): void {
  if (response.raw === undefined) response.statusCode = status
  else response.code?.(status)
}

/** Options of `RateLimitModule.forRootAsync`. */
interface RateLimitAsyncOptions<Native extends NestRequest = NestRequest, Reply extends object = NestResponse> {
  /** Returns the options. Receives the providers of `inject`. */
  readonly useFactory: (
    ...dependencies: never[]
  ) => RateLimitOptions<Native, Reply> | Promise<RateLimitOptions<Native, Reply>>
  /** Tokens of the providers to pass to `useFactory`. */
  readonly inject?: unknown[]
  /** Modules that export these providers. */
  readonly imports?: unknown[]
}

/** Structurally compatible with Nest's `DynamicModule`. */
interface DynamicModule {
  module: typeof RateLimitModule
  global: boolean
  // biome-ignore lint/suspicious/noExplicitAny: the element type is defined by Nest, an optional dependency
  imports: any[]
  // biome-ignore lint/suspicious/noExplicitAny: the element type is defined by Nest, an optional dependency
  providers: any[]
  exports: (typeof RateLimitGuard)[]
}

let modules = 0

/** The part of Nest's `HttpAdapterHost` that is used. `init$` is missing in early versions of Nest 10. */
interface HttpAdapterHost {
  readonly httpAdapter?: NestHttpAdapter | null | undefined
  readonly init$?: { subscribe(listener: () => void): unknown } | undefined
}

const hostToken = 'fluxgate:http-adapter-host'
class HostModule {}

/** Provides Nest's `HttpAdapterHost` under our own token, so that Nest need not be loaded to refer to it. */
const hostModule = async (): Promise<object> => {
  const { HttpAdapterHost } = await import('@nestjs/core')
  return {
    module: HostModule,
    providers: [{ provide: hostToken, useExisting: HttpAdapterHost }],
    exports: [hostToken],
  }
}

/**
 * Calls `listener` once the HTTP adapter exists. Applications of `@nestjs/testing` get it after their providers, microservices
 * never have one.
 */
function onAdapter(host: HttpAdapterHost, listener: (adapter: NestHttpAdapter) => void): void {
  const listen = (): void => {
    if (host.httpAdapter) listener(host.httpAdapter)
  }
  if (host.httpAdapter) listen()
  else host.init$?.subscribe(listen)
}

/**
 * Global module that limits the whole application.
 *
 * @example
 * imports: [RateLimitModule.forRoot({ capacity: 100, window: '1m' })]
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest modules are classes
export class RateLimitModule {
  /** Registers one guard for the whole application. */
  static forRoot<Native extends NestRequest = NestRequest, Reply extends object = NestResponse>(
    options: RateLimitOptions<Native, Reply>,
  ): DynamicModule {
    return RateLimitModule.forRootAsync({ useFactory: () => options })
  }

  /** Like `forRoot`, with options from a factory that may inject dependencies. */
  static forRootAsync<Native extends NestRequest = NestRequest, Reply extends object = NestResponse>({
    useFactory,
    inject = [],
    imports = [],
  }: RateLimitAsyncOptions<Native, Reply>): DynamicModule {
    const open = async (host: HttpAdapterHost, ...dependencies: unknown[]): Promise<RateLimitGuard<Native, Reply>> => {
      const guard = new RateLimitGuard(await useFactory(...(dependencies as never[])))
      onAdapter(host, (adapter) => guard.limitUnguarded(adapter))
      return guard
    }
    return {
      module: RateLimitModule,
      global: true,
      imports: [...imports, hostModule()],
      providers: [
        { provide: RateLimitGuard, useFactory: open, inject: [hostToken, ...inject] },
        { provide: 'APP_GUARD', useExisting: RateLimitGuard },
        // Older versions of Nest merge modules with identical metadata.
        { provide: `fluxgate:${++modules}`, useValue: true },
      ],
      exports: [RateLimitGuard],
    }
  }
}
