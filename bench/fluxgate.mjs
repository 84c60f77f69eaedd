// @ts-check
/** The built modules of FluxGate, with the types of their sources. */
const dist = new URL('../dist/', import.meta.url)
const load = (/** @type {string} */ file) => import(new URL(file, dist).href)

/** @type {typeof import('../src/index.js')} */
export const { createLimiter, createFluxGate, parseRuleSets, systemClock } = await load('index.js')

/** @type {typeof import('../src/core/matching/rule-matcher.js')} */
export const { compileRules } = await load('core/matching/rule-matcher.js')

/** @type {typeof import('../src/stores/redis/redis-store.js')} */
export const { redisStore } = await load('stores/redis/redis-store.js')

/** @type {typeof import('../src/stores/memory/memory-store.js')} */
export const { memoryStore } = await load('stores/memory/memory-store.js')

/** @type {typeof import('../src/bulk.js')} */
export const { bulkEmit, bulkLoad, bulkOverrides } = await load('bulk.js')

/** @type {typeof import('../src/lock.js')} */
export const { redisLock } = await load('lock.js')

/** @type {typeof import('../src/redis/search-index/create-search-index.js')} */
export const { searchIndex } = await load('redis/search-index/create-search-index.js')

/** @type {typeof import('../src/gate/create-flux-gate.js')} */
export const { openGate } = await load('gate/create-flux-gate.js')

/** @type {typeof import('../src/redis/client/open/open-redis.js')} */
export const { openRedis } = await load('redis/client/open/open-redis.js')

/** @type {typeof import('../src/telemetry/decision-recorder.js')} */
export const { DecisionRecorder } = await load('telemetry/decision-recorder.js')

/** @type {typeof import('../src/telemetry/key-digest.js')} */
export const { showKey } = await load('telemetry/key-digest.js')

/** @type {typeof import('../src/telemetry/statistics/local-statistics.js')} */
export const { LocalStatistics } = await load('telemetry/statistics/local-statistics.js')

/** @type {typeof import('../src/telemetry/statistics/shared-statistics.js')} */
export const { SharedStatistics } = await load('telemetry/statistics/shared-statistics.js')

/** @type {typeof import('../src/redis/bulk/commands/writer.js')} */
export const { encodeCommand } = await load('redis/bulk/commands/writer.js')

/** @type {typeof import('../src/stores/redis/overrides/keys.js')} */
export const { overrideHash } = await load('stores/redis/overrides/keys.js')

/** @type {typeof import('../src/stores/redis/overrides/encoding.js')} */
export const { encodeTerms } = await load('stores/redis/overrides/encoding.js')
