// @ts-check
/** FluxGate as it was built, with the types of its sources. */
const dist = new URL('../dist/', import.meta.url)
const load = (/** @type {string} */ file) => import(new URL(file, dist).href)

/** @type {typeof import('../src/index.js')} */
export const { createLimiter, createFluxGate, parseRuleSets, systemClock } = await load('index.js')

/** @type {typeof import('../src/core/rule-matcher.js')} */
export const { compileRules } = await load('core/rule-matcher.js')

/** @type {typeof import('../src/app/redis-store.js')} */
export const { redisStore } = await load('app/redis-store.js')

/** @type {typeof import('../src/app/bulk.js')} */
export const { bulkEmit, bulkLoad } = await load('app/bulk.js')

/** @type {typeof import('../src/app/lock.js')} */
export const { redisLock } = await load('app/lock.js')
