/** Entry `fluxgate-js/nest`: guard, module and decorators for NestJS. */
import type { Rejection } from '../http/guard.js'
import { canActivate, type NestContext, type NestRequest } from './adapters/nest.js'
import { limitedBy, type PlaceDecorator } from './adapters/nest-decorators.js'
import { limitUnguarded, type NestHttpAdapter } from './adapters/nest-unguarded.js'
import type { RateLimitOptions } from './limits/guard-of.js'
import { type RouteLimit, RouteLimits } from './limits/route-limits.js'

export type { ContextCustomizer } from '../http/guard.js'
export type {
  NestContext,
  NestHttpAdapter,
  NestRequest,
  PlaceDecorator,
  RateLimitAsyncOptions,
  RateLimitOptions,
  RouteLimit,
}

/**
 * Decorator that sets the limit of a controller or method: another rule set, another number of permits, or an inline rule as in
 * `@RateLimit({ capacity: 5, window: '1m' })`.
 */
export const RateLimit = <Native extends NestRequest = NestRequest>(
  limit: Exclude<RouteLimit<Native>, false>,
): PlaceDecorator => limitedBy(limit)

/** Decorator that exempts a controller or method from rate limiting. */
export const SkipRateLimit = (): PlaceDecorator => limitedBy(false)

/** Guard that limits requests. Throws an `HttpException` with a problem document for rejected ones. */
export class RateLimitGuard<Native extends NestRequest = NestRequest> {
  readonly #limits: RouteLimits<Native>
  readonly #decided = Symbol('fluxgate.decided')

  constructor(options: RateLimitOptions<Native>) {
    this.#limits = new RouteLimits(options)
  }

  canActivate(context: NestContext): Promise<boolean> {
    return canActivate(context, this.#limits.of, exceptionOf, this.#decided)
  }

  /**
   * Also limits requests that never reach a guard: those without a matching route, and preflight requests answered by
   * `enableCors`. `RateLimitModule` calls this. Without the module, call it with `app.getHttpAdapter()` before
   * `app.enableCors()`.
   */
  limitUnguarded(adapter: NestHttpAdapter): void {
    limitUnguarded(adapter, { place: this.#limits.main, decided: this.#decided })
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

interface RateLimitAsyncOptions<Native extends NestRequest = NestRequest> {
  readonly useFactory: (...dependencies: never[]) => RateLimitOptions<Native> | Promise<RateLimitOptions<Native>>
  readonly inject?: unknown[]
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
  static forRoot<Native extends NestRequest = NestRequest>(options: RateLimitOptions<Native>): DynamicModule {
    return RateLimitModule.forRootAsync({ useFactory: () => options })
  }

  /** Like `forRoot`, with options from a factory that may inject dependencies. */
  static forRootAsync<Native extends NestRequest = NestRequest>({
    useFactory,
    inject = [],
    imports = [],
  }: RateLimitAsyncOptions<Native>): DynamicModule {
    const open = async (host: HttpAdapterHost, ...dependencies: unknown[]): Promise<RateLimitGuard<Native>> => {
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

/** Uses Nest's own `HttpException`, which exception filters check for. Imported on demand, so that this entry loads without Nest. */
async function exceptionOf({ problem, status }: Rejection): Promise<Error> {
  const { HttpException } = await import('@nestjs/common')
  return new HttpException(problem, status)
}
