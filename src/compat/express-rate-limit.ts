/** Entry `fluxgate-js/compat/express-rate-limit`: `rateLimit` with the options of express-rate-limit 8. */
export { DAY, HOUR, MINUTE, SECOND } from './express-rate-limit/durations.js'
export { ipKeyGenerator } from './express-rate-limit/ip-key.js'
export { type RateLimitRequestHandler, rateLimit, rateLimit as default } from './express-rate-limit/middleware.js'
export type {
  ClientRateLimitInfo,
  DraftHeadersVersion,
  LegacyStore,
  Logger,
  Options,
  RateLimitInfo,
  Store,
  ValueDeterminingMiddleware,
} from './express-rate-limit/options.js'
export { FluxGateStore, type FluxGateStoreOptions, MemoryStore } from './express-rate-limit/stores.js'
