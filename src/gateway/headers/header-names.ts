import { strippedRequestHeaders } from './hop-by-hop.js'
import type { IsUntrusted } from './untrusted-headers.js'

/** The name of a request header, and whether it is forwarded. */
export interface HeaderName {
  /** As the client wrote it. */
  readonly name: string
  readonly lower: string
  /** True if it is never forwarded as it is. */
  readonly isStripped: boolean
  /** True if it is forwarded only from a trusted proxy. */
  readonly isUntrusted: boolean
}

/** Bounds the memory, because clients choose the names. Names beyond it are classified on every request. */
const maxNames = 1_000
const maxLength = 64

/** Classifies request headers by name, each spelling once. Requests then share one string per name. */
export class HeaderNames {
  readonly #isUntrusted: IsUntrusted
  readonly #known = new Map<string, HeaderName>()

  constructor(isUntrusted: IsUntrusted) {
    this.#isUntrusted = isUntrusted
  }

  find(name: string): HeaderName {
    return this.#known.get(name) ?? this.#classify(name)
  }

  #classify(name: string): HeaderName {
    const lower = name.toLowerCase()
    const isStripped = strippedRequestHeaders.has(lower)
    const found = { name: internalized(name), lower, isStripped, isUntrusted: this.#isUntrusted(lower) }
    if (name.length <= maxLength && this.#known.size < maxNames) this.#known.set(name, found)
    return found
  }
}

/** Returns the string that V8 uses for properties of this name. undici looks up every name as a property, which is then faster. */
const internalized = (name: string): string => Object.keys({ [name]: true })[0] as string
