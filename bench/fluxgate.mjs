// @ts-check
/** The built modules of FluxGate, with the types of their sources. */
const dist = new URL('../dist/', import.meta.url)
const load = (/** @type {string} */ file) => import(new URL(file, dist).href)

/** @type {typeof import('../src/index.js')} */
export const { createLimiter, createFluxGate, parseRuleSets, systemClock } = await load('index.js')

/** @type {typeof import('../src/core/rule-matcher.js')} */
export const { compileRules } = await load('core/rule-matcher.js')

/** @type {typeof import('../src/app/redis-store.js')} */
export const { redisStore } = await load('app/redis-store.js')

/** @type {typeof import('../src/app/bulk.js')} */
export const { bulkEmit, bulkLoad, bulkOverrides } = await load('app/bulk.js')

/** @type {typeof import('../src/app/lock.js')} */
export const { redisLock } = await load('app/lock.js')

/** @type {typeof import('../src/app/create-search-index.js')} */
export const { searchIndex } = await load('app/create-search-index.js')

/** @type {typeof import('../src/app/create-flux-gate.js')} */
export const { openGate } = await load('app/create-flux-gate.js')

/** @type {typeof import('../src/app/open-redis.js')} */
export const { openRedis } = await load('app/open-redis.js')

/** @type {typeof import('../src/telemetry/decision-recorder.js')} */
export const { DecisionRecorder } = await load('telemetry/decision-recorder.js')

/** @type {typeof import('../src/telemetry/key-digest.js')} */
export const { showKey } = await load('telemetry/key-digest.js')

/** @type {typeof import('../src/telemetry/local-statistics.js')} */
export const { LocalStatistics } = await load('telemetry/local-statistics.js')

/** @type {typeof import('../src/telemetry/shared-statistics.js')} */
export const { SharedStatistics } = await load('telemetry/shared-statistics.js')

/** @type {typeof import('../src/redis/bulk/command-writer.js')} */
export const { encodeCommand } = await load('redis/bulk/command-writer.js')

/** @type {typeof import('../src/stores/override-hashes.js')} */
export const { overrideHash } = await load('stores/override-hashes.js')

/** @type {typeof import('../src/stores/override-value.js')} */
export const { encodeTerms } = await load('stores/override-value.js')
