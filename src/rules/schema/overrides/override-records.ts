import { FluxGateError } from '../../../core/errors.js'
import type { Rule } from '../../../core/rule.js'
import { isObject } from '../../../validation/fields.js'
import { wrongValue } from '../../../validation/kind.js'
import { overrideKey, type ParsedOverride, parseOverride } from './override-schema.js'

const bandColumns = [
  'label',
  'capacity',
  'window',
  'refillTokens',
  'algorithm',
  'refill',
  'maxHold',
  'calendar',
  'timeZone',
  'anchor',
]
const otherColumns = ['key', 'action', 'expiresAt', 'note', 'balance', 'balanceAt']
const numbers = [...bandColumns, 'balance', 'balanceAt', 'expiresAt']

/** The column names of a CSV file of overrides. */
export const overrideColumns: readonly string[] = [...otherColumns, ...bandColumns]

/** Converts a CSV row to an override document with at most one band. Empty cells count as omitted. */
export function rowDocument(columns: readonly string[], row: readonly string[]): Readonly<Record<string, unknown>> {
  const cells = columns.map((name, i) => [name, row[i] ?? ''] as const).filter(([, text]) => text !== '')
  const part = (names: readonly string[]) =>
    Object.fromEntries(
      cells
        .filter(([name]) => names.includes(name))
        .map(([name, text]) => [name, numbers.includes(name) ? numberOrText(text) : text]),
    )
  const band = part(bandColumns)
  return { ...part(otherColumns), ...(Object.keys(band).length > 0 && { bands: [band] }) }
}

const numberOrText = (text: string): string | number => (/^\d{1,15}$/.test(text) ? Number(text) : text)

const maxCached = 10_000

/** Reads many overrides of a rule. Results are cached, because most overrides differ only in their key. */
export class OverrideReader<T> {
  readonly #rule: Rule
  readonly #ipv6Prefix: number
  readonly #nowMs: number
  readonly #encode: (terms: ParsedOverride['terms']) => T
  readonly #cache = new Map<string, T>()

  /** A balance without `balanceAt` is as of `nowMs`. */
  constructor(rule: Rule, nowMs: number, ipv6Prefix: number, encode: (terms: ParsedOverride['terms']) => T) {
    this.#rule = rule
    this.#nowMs = nowMs
    this.#ipv6Prefix = ipv6Prefix
    this.#encode = encode
  }

  /** Reads one override. Documents that differ only in their key share `name`, the cache key. Returns a message if the override is invalid. */
  read(key: unknown, name: string, document: () => unknown): { key: string; isRange: boolean; value: T } | string {
    const cached = this.#cache.get(name)
    const isCached = cached !== undefined && typeof key === 'string' && key.length > 0 && key.length <= 1_024
    const normalized = isCached ? overrideKey(key, this.#rule, this.#ipv6Prefix) : undefined
    if (isCached && typeof normalized === 'object') return { ...normalized, value: cached }
    try {
      const { terms, ...parsed } = parseOverride(document(), this.#rule, this.#nowMs, this.#ipv6Prefix)
      const value = this.#encode(terms)
      if (this.#cache.size >= maxCached) this.#cache.clear()
      this.#cache.set(name, value)
      return { ...parsed, value }
    } catch (error) {
      if (!(error instanceof FluxGateError)) throw error
      return error.errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ')
    }
  }

  /** Reads an override document from JSON text. */
  readJson(text: string): ReturnType<OverrideReader<T>['read']> {
    let document: unknown
    try {
      document = JSON.parse(text)
    } catch (error) {
      return `must be valid JSON: ${(error as Error).message}`
    }
    if (!isObject(document)) return wrongValue(document, 'an object')
    const { key, ...terms } = document
    return this.read(key, JSON.stringify(terms), () => document)
  }
}
