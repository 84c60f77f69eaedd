/** Entry `fluxgate-js/nest`: guard, module and decorators for NestJS. */
import { FluxGateError } from '../core/errors.js'
import { refundIfAborted } from '../http/guard.js'
import { countResponse } from './edge/node-edge.js'
import type { RateLimitOptions } from './limits/create-guard.js'
import { type RouteGuard, type RouteLimit, RouteLimits } from './limits/route-limits.js'
import { graphqlCall, isRootField } from './nest/calls/graphql-call.js'
import { httpCall, type NestRequest, type NestResponse } from './nest/calls/http-call.js'
import { type NestCall, type NestContext, subjectOf } from './nest/calls/nest-call.js'
import { wsCall } from './nest/calls/ws-call.js'
import { setDecision } from './nest/limit-decision.js'
import { hasLimit, limitOf, type RateLimitDecorator, setLimit } from './nest/limit-metadata.js'
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

/**
 * Decorator that sets the limit of a controller, resolver, gateway or method: another rule set, another number of permits, an inline
 * rule as in `@RateLimit({ capacity: 5, window: '1m' })`, or replacements of named limits.
 */
export const RateLimit = <Native extends object = NestRequest>(
  limit: Exclude<RouteLimit<Native>, false>,
): RateLimitDecorator => setLimit(limit)

/**
 * Decorator that exempts a controller or method from rate limiting, or from the named limits only.
 *
 * @example
 * @SkipRateLimit('burst')
 */
export const SkipRateLimit = (...names: string[]): RateLimitDecorator =>
  setLimit(names.length === 0 ? false : Object.fromEntries(names.map((name) => [name, false])))

/**
 * Guard that limits HTTP requests, fields of GraphQL operations and WebSocket messages. Throws an exception of Nest with a problem
 * document for rejected ones, so that filters see it.
 */
export class RateLimitGuard<Native extends object = NestRequest, Reply extends object = NestResponse> {
  readonly #limits: RouteLimits<Native, Reply>
  readonly #countedBy = Symbol('fluxgate.countedBy')

  constructor(options: RateLimitOptions<Native, Reply>) {
    this.#limits = new RouteLimits(options)
  }

  /** Called by Nest for every request. */
  async canActivate(context: NestContext): Promise<boolean> {
    const call = this.#callOf(context)
    if (call === undefined) return true
    const { limit, scopeOf } = limitOf(context.getHandler(), context.getClass())
    const routeGuard = this.#limits.guardOf(limit, scopeOf)
    if (context.getType() === 'http' && this.#isCounted(subjectOf(context) as CountedRequest, routeGuard)) return true
    return routeGuard === undefined || this.#limit(context, call, routeGuard)
  }

  /** Undefined for calls that are not limited. */
  #callOf(context: NestContext): NestCall | undefined {
    const { warnings } = this.#limits
    switch (context.getType()) {
      case 'http': {
        const http = context.switchToHttp()
        return httpCall(http.getRequest() as NestRequest, http.getResponse() as NestResponse)
      }
      case 'graphql': {
        const args = context.getArgs()
        return isRootField(args) || hasLimit(context.getHandler()) ? graphqlCall(args, warnings) : undefined
      }
      case 'ws':
        return wsCall(context, warnings)
      default:
        warnings.warn(
          'FLUXGATE_RUNTIME_UNSUPPORTED',
          `RateLimitGuard does not limit calls of the type "${context.getType()}". Use a guard with gate.check().`,
        )
        return undefined
    }
  }

  /** True if the same limit has counted the request before, for example because the guard was registered twice. */
  #isCounted(request: CountedRequest, routeGuard: RouteGuard<Native, Reply> | undefined): boolean {
    const isCounted = routeGuard !== undefined && request[this.#countedBy] === routeGuard
    request[this.#countedBy] = routeGuard ?? false
    return isCounted
  }

  async #limit(
    context: NestContext,
    call: NestCall,
    { guard, overrides }: RouteGuard<Native, Reply>,
  ): Promise<boolean> {
    const native = call.native as Native
    const admitted = await guard.admit(call.edgeFor(guard), native, overrides)
    const outcome = refundIfAborted(admitted, call.isAborted())
    if (outcome.kind === 'ABORTED') return unanswered()
    call.setHeaders(outcome)
    if (outcome.decision !== undefined) setDecision(context, outcome.decision)
    if (outcome.kind === 'ALLOWED') {
      if (call.response !== undefined) {
        if (guard.countsByResponse) countResponse(guard, native, outcome, call.response)
      } else if (outcome.release !== undefined) {
        outcome.release()
        throw responseUnknown()
      }
      return true
    }
    const { decision } = outcome
    if (guard.onRejected !== undefined && decision !== undefined) {
      call.prepareReply(outcome)
      await guard.onRejected(decision, native, call.reply as Reply)
      if (call.sendsReplies) return unanswered()
    }
    throw await call.exceptionOf(outcome)
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

const responseUnknown = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    'The algorithm CONCURRENCY needs the HTTP response, which WebSocket messages and GraphQL contexts without res do not have. Use another algorithm, or return { req, res } from the context function of GraphQLModule.',
  )

/** Options of `RateLimitModule.forRootAsync`. */
interface RateLimitAsyncOptions<Native extends object = NestRequest, Reply extends object = NestResponse> {
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
  static forRoot<Native extends object = NestRequest, Reply extends object = NestResponse>(
    options: RateLimitOptions<Native, Reply>,
  ): DynamicModule {
    return RateLimitModule.forRootAsync({ useFactory: () => options })
  }

  /** Like `forRoot`, with options from a factory that may inject dependencies. */
  static forRootAsync<Native extends object = NestRequest, Reply extends object = NestResponse>({
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
