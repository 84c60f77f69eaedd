/** Entry `fluxgate-js/lock`: distributed locks and semaphores in Redis. */
export {
  type QuorumOptions,
  quorumLock,
  redisLock,
  redisSemaphore,
  type SemaphoreOptions,
} from './redis/lock/create-locks.js'
export { type GuardedScript, guardedScript } from './redis/lock/guarded-script.js'
export type { Hold } from './redis/lock/hold.js'
export type { Holdable, Work } from './redis/lock/holdable.js'
export type { AcquireOptions, HoldOptions, LockOptions } from './redis/lock/options.js'
export type { LockState } from './redis/lock/redis-backend.js'
export type { RedisLock } from './redis/lock/redis-lock.js'
