/** Entry `fluxgate-js/compat/rate-limiter-flexible`: the limiters of rate-limiter-flexible 11 in memory and on Redis. */

export {
  type BlackAndWhiteOptions,
  type ListedPredicate,
  RLWrapperBlackAndWhite,
} from './rate-limiter-flexible/black-and-white.js'
export { BurstyRateLimiter, RateLimiterUnion } from './rate-limiter-flexible/combined-limiters.js'
export {
  type ActionOptions,
  type CompatibleLimiter,
  RateLimiterAbstract,
  RateLimiterCompatibleAbstract,
  type RateLimiterOptions,
} from './rate-limiter-flexible/limiter-base.js'
export { RateLimiterMemory } from './rate-limiter-flexible/memory-limiter.js'
export { RateLimiterRedis, type RateLimiterRedisOptions } from './rate-limiter-flexible/redis-limiter.js'
export { RateLimiterRes } from './rate-limiter-flexible/result.js'
export {
  RateLimiterQueue,
  RateLimiterQueueError,
  type RateLimiterQueueOptions,
} from './rate-limiter-flexible/token-queue.js'
