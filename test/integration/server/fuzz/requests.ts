import type { Random } from '../../../../src/core/seeded-random.js'
import { anyJson, anyText, oneOf } from './values.js'

// biome-ignore lint/suspicious/noExplicitAny: a document that is walked through
type Document = any

export interface FuzzRequest {
  readonly operation: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

interface Operation {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly described: Document
}

/** Generates requests from an OpenAPI document: mostly valid, with some parts replaced by invalid values. */
export class FuzzRequests {
  readonly #document: Document
  readonly #random: Random
  readonly #operations: readonly Operation[]
  #next = 0

  constructor(document: Document, random: Random) {
    this.#document = document
    this.#random = random
    this.#operations = Object.entries<Document>(document.paths).flatMap(([path, methods]) =>
      Object.entries<Document>(methods).map(([method, described]) => ({
        name: described.operationId,
        method: method.toUpperCase(),
        path,
        described,
      })),
    )
  }

  /** Operations alternate, so each is used equally often. */
  next(): FuzzRequest {
    const random = this.#random
    const operation = this.#operations[this.#next++ % this.#operations.length] as Operation
    const { name, method, path, described } = operation
    const other =
      random() < 0.03 ? oneOf(random, ['GET', 'PUT', 'TRACE', 'PROPFIND', 'HEAD', 'OPTIONS', 'PATCH']) : method
    return {
      operation: name,
      method: other,
      path: this.#path(path) + this.#query(described),
      ...this.#content(described),
    }
  }

  /** Existing names, most of the time. */
  #path(path: string): string {
    const random = this.#random
    const known: Readonly<Record<string, readonly string[]>> = {
      id: ['shop', 'other', 'new'],
      ruleId: ['per-address', 'global', 'a'],
      key: ['10.0.0.0%2F8', '203.0.113.7', '10.0.0.0/8'],
    }
    return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const choices = known[name]
      if (choices !== undefined && random() < 0.7) return oneOf(random, choices)
      if (random() < 0.2)
        return oneOf(random, ['%', '%zz', '%ff%fe', '%C0%80', '..', '.', '%2e%2e', '%00', '', ';a=b', '%ED%A0%80'])
      return encoded(anyText(random))
    })
  }

  #query({ parameters = [] }: Document): string {
    const random = this.#random
    const pairs = parameters
      .filter((parameter: Document) => parameter.in === 'query' && (parameter.required || random() < 0.4))
      .map(({ name, schema }: Document) => {
        const known: Readonly<Record<string, string>> = { ruleSetId: 'shop', ruleId: 'per-address', key: '203.0.113.7' }
        const value = random() < 0.6 ? (known[name] ?? String(this.#value(schema))) : anyText(random)
        return `${name}=${random() < 0.05 ? '%zz' : encoded(value)}`
      })
    if (random() < 0.05) pairs.push(`${encoded(anyText(random))}=${encoded(anyText(random))}`)
    if (random() < 0.02) pairs.push(...pairs)
    return pairs.length === 0 ? '' : `?${pairs.join('&')}`
  }

  #content({ requestBody, parameters = [] }: Document): Pick<FuzzRequest, 'headers' | 'body'> {
    const random = this.#random
    const headers: Record<string, string> = {}
    for (const { in: place, name } of parameters)
      if (place === 'header' && random() < 0.3)
        headers[name] = oneOf(random, [
          '*',
          '"1"',
          '"2"',
          'W/"1"',
          '"x"',
          '',
          ',',
          '"1", "2"',
          '"99999999999999999999"',
        ])
    if (random() < 0.05)
      headers.traceparent = oneOf(random, ['00-0-0-01', 'x', `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`])
    if (random() < 0.02) headers.Accept = 'text/html'
    const [type, content] = Object.entries<Document>(requestBody?.content ?? {})[0] ?? []
    if (type === undefined) return { headers, body: undefined }
    headers['Content-Type'] =
      random() < 0.97 ? type : oneOf(random, ['text/plain', '', 'application/json;charset=latin1', 'a/b'])
    return { headers, body: this.#body(content.schema) }
  }

  #body(schema: Document): string {
    const random = this.#random
    const kind = random()
    if (kind < 0.15) return anyJson(random)
    if (kind < 0.18)
      return oneOf(random, [
        '',
        '{',
        '{}',
        '[]',
        '"',
        '{"a":1,}',
        '\ufeff{}',
        'NaN',
        '{"a":1}{"b":2}',
        '{"id":"a","id":"b"}',
      ])
    if (kind < 0.185) return `{"x":"${'z'.repeat(oneOf(random, [2 ** 20 - 8, 2 ** 20, 3 * 2 ** 20]))}"}`
    return JSON.stringify(this.#value(schema))
      .replaceAll('"@any"', () => anyJson(random))
      .replaceAll('"@proto"', '"__proto__"')
  }

  /** A value that the schema allows, with `@any` in some positions for a value that it may not allow. */
  #value(schema: Document): unknown {
    const random = this.#random
    if (random() < 0.04) return '@any'
    if (schema.$ref !== undefined) return this.#value(this.#found(schema.$ref))
    if (schema.enum !== undefined) return oneOf(random, schema.enum)
    if (schema.anyOf !== undefined) return this.#value(oneOf(random, schema.anyOf))
    if (schema.examples !== undefined) return oneOf(random, schema.examples)
    const type = Array.isArray(schema.type) ? oneOf(random, schema.type) : schema.type
    switch (type) {
      case 'null':
        return null
      case 'boolean':
        return random() < 0.5
      case 'integer':
      case 'number':
        return oneOf(random, [schema.minimum ?? 1, 1, 2, 60, schema.maximum ?? 1_000])
      case 'string':
        return schema.pattern === undefined && random() < 0.3
          ? anyText(random)
          : oneOf(random, ['a', 'shop', '1m', '203.0.113.7'])
      case 'array':
        return Array.from({ length: Math.max(schema.minItems ?? 0, Math.floor(random() * 3)) }, () =>
          this.#value(schema.items),
        )
      default:
        return this.#object(schema)
    }
  }

  #object({ properties = {}, required = [] }: Document): object {
    const random = this.#random
    const chance = oneOf(random, [0, 0.1, 0.5])
    const members = Object.entries<Document>(properties)
      .filter(([name]) => (required.includes(name) && random() < 0.98) || random() < chance)
      .map(([name, schema]) => [name, this.#value(schema)])
    if (random() < 0.05) members.push([oneOf(random, ['@proto', 'constructor', 'extra', '']), '@any'])
    return Object.fromEntries(members)
  }

  #found(reference: string): Document {
    return reference
      .split('/')
      .slice(1)
      .reduce((at: Document, step: string) => at[step], this.#document)
  }
}

/** A lone surrogate has no UTF-8 encoding. */
const encoded = (text: string): string => encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, '?'))
