/** `fluxgate-js/nest` */
import type { Refusal } from '../http/guard.js'
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

/** Another limit for a controller or one of its methods: of another rule set, of another cost, or of a rule of its own. */
export const RateLimit = <Native extends NestRequest = NestRequest>(
  limit: Exclude<RouteLimit<Native>, false>,
): PlaceDecorator => limitedBy(limit)

/** No limit for a controller or one of its methods. */
export const SkipRateLimit = (): PlaceDecorator => limitedBy(false)

/** What is refused is thrown as an HttpException, with the problem as its response. */
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
   * Also limits the requests of an application that reach no guard: those that no route takes, and preflight requests that
   * `enableCors` answers. `RateLimitModule` calls it; others call it with `app.getHttpAdapter()` before `app.enableCors()`.
   */
  limitUnguarded(adapter: NestHttpAdapter): void {
    limitUnguarded(adapter, { place: this.#limits.main, decided: this.#decided })
  }

  /** Called by Nest before it waits for the requests that are under way. */
  onModuleDestroy(): Promise<void> {
    return this.close()
  }

  close(): Promise<void> {
    return this.#limits.close()
  }
}

interface RateLimitAsyncOptions<Native extends NestRequest = NestRequest> {
  readonly useFactory: (...dependencies: never[]) => RateLimitOptions<Native> | Promise<RateLimitOptions<Native>>
  readonly inject?: unknown[]
  readonly imports?: unknown[]
}

/** As Nest takes it. */
interface DynamicModule {
  module: typeof RateLimitModule
  global: boolean
  // biome-ignore lint/suspicious/noExplicitAny: what Nest allows here depends on types that are Nest's
  imports: any[]
  // biome-ignore lint/suspicious/noExplicitAny: the same
  providers: any[]
  exports: (typeof RateLimitGuard)[]
}

let modules = 0

/** As much of Nest's as is needed. `init$` is missing in early versions of Nest 10. */
interface HttpAdapterHost {
  readonly httpAdapter?: NestHttpAdapter | null | undefined
  readonly init$?: { subscribe(listener: () => void): unknown } | undefined
}

const hostToken = 'fluxgate:http-adapter-host'
class HostModule {}

/** Provides the host under a token that is known before Nest is loaded. */
const hostModule = async (): Promise<object> => {
  const { HttpAdapterHost } = await import('@nestjs/core')
  return {
    module: HostModule,
    providers: [{ provide: hostToken, useExisting: HttpAdapterHost }],
    exports: [hostToken],
  }
}

/** Applications of `@nestjs/testing` get their adapter after their providers; some, such as microservices, never have one. */
function onAdapter(host: HttpAdapterHost, listener: (adapter: NestHttpAdapter) => void): void {
  const listen = (): void => {
    if (host.httpAdapter) listener(host.httpAdapter)
  }
  if (host.httpAdapter) listen()
  else host.init$?.subscribe(listen)
}

// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class RateLimitModule {
  /** One guard for the whole application. */
  static forRoot<Native extends NestRequest = NestRequest>(options: RateLimitOptions<Native>): DynamicModule {
    return RateLimitModule.forRootAsync({ useFactory: () => options })
  }

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
        // Older versions of Nest take two modules for one if they look alike.
        { provide: `fluxgate:${++modules}`, useValue: true },
      ],
      exports: [RateLimitGuard],
    }
  }
}

/** Nest's own class, since its filters ask for it. Loaded when it is needed, so that this entry needs no Nest to load. */
async function exceptionOf({ problem, status }: Refusal): Promise<Error> {
  const { HttpException } = await import('@nestjs/common')
  return new HttpException(problem, status)
}
