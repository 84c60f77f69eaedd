/** `fluxgate/nest` */
import type { Refusal } from '../http/guard.js'
import { canActivate, type NestContext, type NestRequest } from '../middleware/nest.js'
import { limitedBy, type PlaceDecorator } from '../middleware/nest-decorators.js'
import type { RateLimitOptions } from './guard-of.js'
import { type RouteLimit, RouteLimits } from './route-limits.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { NestContext, NestRequest, PlaceDecorator, RateLimitAsyncOptions, RateLimitOptions, RouteLimit }

/** Another limit for a controller or one of its methods: of another rule set, of another cost, or of a rule of its own. */
export const RateLimit = <Native extends NestRequest = NestRequest>(
  limit: Exclude<RouteLimit<Native>, false>,
): PlaceDecorator => limitedBy(limit)

/** No limit for a controller or one of its methods. */
export const SkipRateLimit = (): PlaceDecorator => limitedBy(false)

/** What is refused is thrown as an HttpException, with the problem as its response. */
export class RateLimitGuard<Native extends NestRequest = NestRequest> {
  readonly #limits: RouteLimits<Native>

  constructor(options: RateLimitOptions<Native>) {
    this.#limits = new RouteLimits(options)
  }

  canActivate(context: NestContext): Promise<boolean> {
    return canActivate(context, this.#limits.of, exceptionOf)
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
    const open = async (...dependencies: unknown[]): Promise<RateLimitGuard<Native>> =>
      new RateLimitGuard(await useFactory(...(dependencies as never[])))
    return {
      module: RateLimitModule,
      global: true,
      imports,
      providers: [
        { provide: RateLimitGuard, useFactory: open, inject },
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
