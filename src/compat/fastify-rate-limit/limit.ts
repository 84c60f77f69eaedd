import { canonicalIp, cidrText, parseCidr } from '../../core/keys/ip-address.js'
import { formatDuration } from './duration.js'
import type { ErrorResponseContext, LimitedRequest, Settings } from './settings.js'
import type { Counted, LimitStore } from './stores.js'

/** The state of a limit for a request. `isAllowed` is true only for requests on the allow list. */
export type AppliedLimit =
  | {
      /** True: the key is on the allow list and is not limited. */
      readonly isAllowed: true
      /** The key of the request. */
      readonly key: string
    }
  | {
      /** False: the key is limited. */
      readonly isAllowed: false
      /** The key of the request. */
      readonly key: string
      /** The maximum number of requests per window. */
      readonly max: number
      /** The length of the window in milliseconds. */
      readonly timeWindow: number
      /** The number of requests left in the window; at least 0. */
      readonly remaining: number
      /** The time until the window ends, in milliseconds. */
      readonly ttl: number
      /** The time until the window ends in seconds, rounded up. */
      readonly ttlInSeconds: number
      /** True if the request exceeds the limit. */
      readonly isExceeded: boolean
      /** True if the key exceeded the limit more than `ban` times. */
      readonly isBanned: boolean
    }

/** Options of a call of the function that `createRateLimit` returns. */
export interface CallOptions {
  /** Default true. With false, the request is not counted. */
  readonly increment?: boolean | undefined
}

/** The key of an address: IPv4 as it is, IPv6 as the first address of its network. */
export function normalizeIP(ip: string, ipv6Subnet = 64): string {
  const canonical = canonicalIp(ip)
  if (canonical === undefined) return ip.toLowerCase()
  if (!canonical.includes(':') || ipv6Subnet === 128) return canonical
  const network = parseCidr(`${canonical}/${ipv6Subnet}`)
  return network === undefined ? canonical : cidrText(network).replace(/\/.*/, '')
}

/** Counts a request. */
export async function applyLimit(
  store: LimitStore,
  settings: Settings,
  request: LimitedRequest,
  { increment = true }: CallOptions = {},
): Promise<AppliedLimit> {
  const { keyGenerator, allowList, ban, skipOnError } = settings
  const own = keyGenerator === undefined ? normalizeIP(request.ip, settings.ipv6Subnet) : await keyGenerator(request)
  const config = request.routeOptions?.config as { rateLimit?: { groupId?: string } } | undefined
  const groupId = config?.rateLimit?.groupId
  const key = (groupId ? `${own}${groupId}` : own) as string
  if (typeof allowList === 'function' ? await allowList(request, key) : allowList?.includes(key))
    return { isAllowed: true, key }
  const max = typeof settings.max === 'number' ? settings.max : await settings.max(request, key)
  const timeWindow =
    typeof settings.timeWindow === 'number' ? settings.timeWindow : await settings.timeWindow(request, key)
  let counted: Counted = { current: 0, ttl: 0 }
  try {
    counted = increment ? await store.count(key, timeWindow, max) : await store.read(key, timeWindow, max)
  } catch (error) {
    if (!skipOnError) throw error
  }
  const { current, ttl } = counted
  return {
    isAllowed: false,
    key,
    max,
    timeWindow,
    remaining: Math.max(0, max - current),
    ttl,
    ttlInSeconds: Math.ceil(ttl / 1000),
    isExceeded: current > max,
    isBanned: ban !== -1 && current - max > ban,
  }
}

/** A reply of Fastify, as far as it is used. */
interface LimitedReply {
  header(name: string, value: unknown): unknown
}

/** Returns a hook that limits requests. `ran` marks a request that a limit of the plugin has seen. */
export const limitHook =
  (store: LimitStore, settings: Settings, ran: symbol) => async (request: any, reply: LimitedReply) => {
    if (request[ran]) return
    request[ran] = true
    const applied = await applyLimit(store, settings, request)
    if (applied.isAllowed) return
    const { key, max, remaining, ttl, ttlInSeconds, isExceeded, isBanned } = applied
    const { labels, addHeaders = {}, addHeadersOnExceeding = {}, onExceeding, onExceeded, onBanReach } = settings
    const set = (wanted: Readonly<Record<string, boolean>>, name: string, value: number): void => {
      if (wanted[name] ?? true) reply.header(name, value)
    }
    const headers = isExceeded ? addHeaders : addHeadersOnExceeding
    if (isExceeded) onExceeded?.(request, key)
    set(headers, labels.limit, max)
    set(headers, labels.remaining, isExceeded ? 0 : remaining)
    set(headers, labels.reset, ttlInSeconds)
    if (!isExceeded) {
      onExceeding?.(request, key)
      return
    }
    set(headers, labels.retryAfter, ttlInSeconds)
    const statusCode = isBanned ? 403 : 429
    const context: ErrorResponseContext = {
      statusCode,
      ban: isBanned,
      max,
      ttl,
      after: formatDuration(ttlInSeconds * 1000),
    }
    if (isBanned) onBanReach?.(request, key)
    throw settings.errorResponseBuilder?.(request, context) ?? limitExceeded(context)
  }

const limitExceeded = ({ statusCode, after }: ErrorResponseContext): Error =>
  Object.assign(new Error(`Rate limit exceeded, retry in ${after}`), { statusCode })
