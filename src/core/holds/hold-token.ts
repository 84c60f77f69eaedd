import { ticksPerMs } from '../clock.js'
import { FluxGateError } from '../errors.js'
import { maxWindowTicks } from '../rule.js'
import type { HoldId } from './hold-storage.js'

/**
 * The contents of `Decision.holdId`. It names the buckets of the hold, so that every process that has the same rules can release it
 * without a table of holds.
 */
export interface HoldToken {
  readonly hold: HoldId
  /** True if the hold was taken in one process while the store failed. Only that process can release it. */
  readonly isLocal: boolean
  readonly ruleSetId: string | null
  /** The shortest `maxHold` of its bands. */
  readonly maxHoldMs: number
  readonly buckets: readonly { readonly ruleId: string; readonly key: string }[]
}

const longestHoldMs = maxWindowTicks / ticksPerMs

const form = /^([ls])([0-9a-f]{8})([0-9a-f]{8})\.([\w-]+)$/

/** Without `Buffer`, which edge runtimes do not have. */
const toBase64 = (text: string): string =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

const fromBase64 = (text: string): string =>
  new TextDecoder().decode(
    Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0)),
  )

const hexadecimal = (value: number): string => value.toString(16).padStart(8, '0')

/** Encodes a token as text of URL-safe characters. */
export function encodeHold({ hold, isLocal, ruleSetId, maxHoldMs, buckets }: HoldToken): string {
  const place = JSON.stringify([ruleSetId, maxHoldMs, ...buckets.flatMap(({ ruleId, key }) => [ruleId, key])])
  const id = hexadecimal(hold.high) + hexadecimal(hold.low)
  return `${isLocal ? 'l' : 's'}${id}.${toBase64(place)}`
}

/** Decodes a hold id. Throws FLUXGATE_ARGUMENT_INVALID for any other value. */
export function decodeHold(holdId: unknown): HoldToken {
  const [, scope, high = '', low = '', place = ''] = (typeof holdId === 'string' && form.exec(holdId)) || []
  const names = scope === undefined ? undefined : parseNames(place)
  if (names === undefined)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `holdId must be the holdId of a decision; received ${typeof holdId === 'string' ? 'another string' : typeof holdId}.`,
    )
  const hold = { high: Number.parseInt(high, 16), low: Number.parseInt(low, 16) }
  return { hold, isLocal: scope === 'l', ...names }
}

function parseNames(place: string): Pick<HoldToken, 'ruleSetId' | 'maxHoldMs' | 'buckets'> | undefined {
  let values: unknown
  try {
    values = JSON.parse(fromBase64(place))
  } catch {
    return undefined
  }
  if (!Array.isArray(values) || values.length < 4 || values.length % 2 === 1) return undefined
  const [ruleSetId, maxHoldMs, ...names] = values as unknown[]
  if (ruleSetId !== null && typeof ruleSetId !== 'string') return undefined
  if (typeof maxHoldMs !== 'number' || !(maxHoldMs > 0 && maxHoldMs <= longestHoldMs)) return undefined
  if (!names.every((name) => typeof name === 'string' && name !== '')) return undefined
  return { ruleSetId, maxHoldMs, buckets: bucketsOf(names as string[]) }
}

/** Each bucket once: clients can send any text, and a long one could name a large bucket thousands of times. */
function bucketsOf(names: readonly string[]): HoldToken['buckets'] {
  const buckets = new Map<string, HoldToken['buckets'][0]>()
  for (let i = 0; i < names.length; i += 2) {
    const bucket = { ruleId: names[i] as string, key: names[i + 1] as string }
    buckets.set(JSON.stringify(bucket), bucket)
  }
  return [...buckets.values()]
}
