/** Entry `fluxgate/redis`: bucket store and rule store in Redis. */
export type { RedisNode } from './open-redis-address.js'
export type { RedisOptions } from './open-redis-target.js'
export { type RedisRuleStoreOptions, redisRuleStore } from './redis-rule-store.js'
export { type RedisStore, type RedisStoreOptions, redisStore } from './redis-store.js'
