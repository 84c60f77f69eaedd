/** Entry `fluxgate-js/redis`: bucket store and rule store in Redis. */
export type { RedisNode } from './redis/client/open/address.js'
export type { RedisOptions } from './redis/client/open/target.js'
export { type RedisRuleStoreOptions, redisRuleStore } from './rules/redis/redis-rule-store.js'
export { type RedisStore, type RedisStoreOptions, redisStore } from './stores/redis/redis-store.js'
