import { FluxGateError } from '../../core/errors.js'
import type { Rule } from '../../core/rule.js'
import { isObject } from '../../validation/fields.js'
import { overrideKey, type ParsedOverride, parseOverride } from './override-schema.js'

const bandColumns = ['label', 'capacity', 'window', 'refillTokens', 'algorithm', 'refill']
const otherColumns = ['key', 'action', 'expiresAt', 'note', 'balance', 'balanceAt']
const numbers = [...bandColumns, 'balance', 'balanceAt', 'expiresAt']

/** What the columns of a table may be called. */
export const overrideColumns: readonly string[] = [...otherColumns, ...bandColumns]

/** A row of a table, in which what is empty is not said, as a document with one band. */
export function rowDocument(columns: readonly string[], row: readonly string[]): Readonly<Record<string, unknown>> {
  const said = columns.map((name, i) => [name, row[i] ?? ''] as const).filter(([, text]) => text !== '')
  const part = (names: readonly string[]) =>
    Object.fromEntries(
      said
        .filter(([name]) => names.includes(name))
        .map(([name, text]) => [name, numbers.includes(name) ? numberOr(text) : text]),
    )
  const band = part(bandColumns)
  return { ...part(otherColumns), ...(Object.keys(band).length > 0 && { bands: [band] }) }
}

const numberOr = (text: string): string | number => (/^\d{1,15}$/.test(text) ? Number(text) : text)

const mostRemembered = 10_000

/** Reads many overrides of a rule, most of which say the same of different keys. */
export class OverrideReader<T> {
  readonly #rule: Rule
  readonly #ipv6Prefix: number
  readonly #nowMs: number
  readonly #encode: (terms: ParsedOverride['terms']) => T
  readonly #known = new Map<string, T>()

  /** Balances that do not say of when they are are as of `nowMs`. */
  constructor(rule: Rule, nowMs: number, ipv6Prefix: number, encode: (terms: ParsedOverride['terms']) => T) {
    this.#rule = rule
    this.#nowMs = nowMs
    this.#ipv6Prefix = ipv6Prefix
    this.#encode = encode
  }

  /** `name` is the same for documents that differ in their key only. What is wrong, if anything. */
  read(key: unknown, name: string, document: () => unknown): { key: string; isRange: boolean; value: T } | string {
    const known = this.#known.get(name)
    const isKnown = known !== undefined && typeof key === 'string' && key.length > 0 && key.length <= 1_024
    const spelt = isKnown ? overrideKey(key, this.#rule, this.#ipv6Prefix) : undefined
    if (isKnown && typeof spelt === 'object') return { ...spelt, value: known }
    try {
      const { terms, ...parsed } = parseOverride(document(), this.#rule, this.#nowMs, this.#ipv6Prefix)
      const value = this.#encode(terms)
      if (this.#known.size >= mostRemembered) this.#known.clear()
      this.#known.set(name, value)
      return { ...parsed, value }
    } catch (error) {
      if (!(error instanceof FluxGateError)) throw error
      return error.errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ')
    }
  }

  /** A document as JSON. */
  readJson(text: string): ReturnType<OverrideReader<T>['read']> {
    let document: unknown
    try {
      document = JSON.parse(text)
    } catch (error) {
      return `not JSON: ${(error as Error).message}`
    }
    if (!isObject(document)) return 'not an object'
    const { key, ...terms } = document
    return this.read(key, JSON.stringify(terms), () => document)
  }
}
