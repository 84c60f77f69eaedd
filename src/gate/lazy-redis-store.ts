import type { BucketStore, SharedGenerations } from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import { emitWarning } from '../core/runtime/emit-warning.js'
import type { RedisStore } from '../stores/redis/redis-store.js'
import { type OpenRedisStore, redisByUri } from './redis-by-uri.js'

/**
 * A `redisStore` whose module is imported in the background, so that limits in memory never load the Redis code. Calls wait
 * until the module is loaded. The address and the options are validated beforehand, so that errors are thrown
 * synchronously.
 *
 * The build hides the import from bundlers: otherwise the bundle of every program would contain the Redis code, and every build
 * would need ioredis.
 */
export const loadRedisStore: OpenRedisStore = (where, options) => loadStore(where, options, false)

/** Like `loadRedisStore`, with the generations of rules, for callers that read them before they decide. */
const loadWithGenerations: OpenRedisStore = (where, options) => loadStore(where, options, true)

function loadStore(
  where: Parameters<OpenRedisStore>[0],
  options: Parameters<OpenRedisStore>[1],
  withGenerations: boolean,
): BucketStore {
  let store: RedisStore | undefined
  const loading = import('../stores/redis/redis-store.js').then(
    ({ redisStore }) => {
      store = redisStore(where, options)
      return store
    },
    (cause) => {
      const error = moduleMissing(cause)
      emitWarning(error)
      throw error
    },
  )
  // Reported above, even if there is never a call.
  loading.catch(() => {})
  const loaded = (): RedisStore | Promise<RedisStore> => store ?? loading
  return {
    charge: async (charges, peek) => (await loaded()).charge(charges, peek),
    refund: async (refunds) => (await loaded()).refund(refunds),
    reset: async (group, key) => (await loaded()).reset(group, key),
    holds: {
      release: async (holds) => (await loaded()).holds.release(holds),
      renew: async (holds) => (await loaded()).holds.renew(holds),
    },
    reservations: {
      reserve: async (request) => (await loaded()).reservations.reserve(request),
      settle: async (request) => (await loaded()).reservations.settle(request),
      reservedIn: async (group, key, now) => (await loaded()).reservations.reservedIn?.(group, key, now) ?? [],
    },
    retire: (group) => store?.retire?.(group),
    close: async () => (await loaded()).close(),
    variants: { charge: async (charge, variant) => (await loaded()).variants.charge(charge, variant) },
    generations: withGenerations ? laterGenerations(loading, () => store) : undefined,
    get overrides() {
      return store?.overrides
    },
    get bans() {
      return store?.bans
    },
    availability: {
      isBounded: true,
      probe: async () => (await loaded()).probe(),
      ready: async (withinMs) => (await loaded()).ready(withinMs),
    },
  }
}

/** The generations of a store that is still loading: unknown until it is loaded. */
const laterGenerations = (loading: Promise<RedisStore>, store: () => RedisStore | undefined): SharedGenerations => ({
  get isKnown() {
    return store()?.generations.isKnown ?? false
  },
  of: (ruleSetId, ruleId) => store()?.generations.of(ruleSetId, ruleId) ?? 0,
  resetRules: async (ruleSetId, ruleIds) => (await loading).generations.resetRules(ruleSetId, ruleIds),
  watch(onChange) {
    let stop: (() => void) | undefined
    let isStopped = false
    loading.then(
      ({ generations }) => {
        if (!isStopped) stop = generations.watch(onChange)
      },
      () => {},
    )
    return () => {
      isStopped = true
      stop?.()
    }
  },
})

/** Opens a Redis store by URI or settings. */
export const lazyRedisStore = redisByUri(loadRedisStore)

/** Like `lazyRedisStore`, with the generations of rules. */
export const lazySharedRedisStore = redisByUri(loadWithGenerations)

const moduleMissing = (cause: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_MISCONFIGURED',
    "The Redis store could not be loaded by its URI, because this program is bundled or the runtime cannot load modules. Pass a store: import { redisStore } from 'fluxgate-js/redis' and set store: redisStore(uri).",
    { cause },
  )
