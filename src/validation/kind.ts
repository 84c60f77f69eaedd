import { describeValue, noIssues, type ValidationIssues } from './issues.js'

export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * A kind of value. Options, settings, rule documents, routes and HTTP bodies are described with kinds: messages, JSON Schema and
 * OpenAPI are derived from them.
 */
export interface Kind<T> {
  /** Completes the message "must be …". */
  readonly allowed: string
  /** May accept more than `parse`, where JSON Schema cannot express a constraint. Empty for values that only code can pass. */
  readonly schema: JsonSchema
  /** Returns `undefined` for an invalid value. */
  readonly parse: (value: unknown) => T | undefined
  /** Structured values only: reports invalid members by their own paths. If it reports any, the result is incomplete. */
  readonly read?: (value: unknown, path: string, issues: ValidationIssues) => T | undefined
  /** The value may be a password, so messages must not show it. */
  readonly isSecret?: true
}

/** Kinds by field name. */
export type Kinds = Readonly<Record<string, Kind<unknown>>>

export type ValueOf<K> = K extends Kind<infer T> ? T : never

/** A kind whose members are reported by their own paths. */
export function structured<T>(
  allowed: string,
  schema: JsonSchema,
  read: (value: unknown, path: string, issues: ValidationIssues) => T | undefined,
): Kind<T> {
  const parse = (value: unknown): T | undefined => {
    const issues = noIssues()
    const result = read(value, '', issues)
    return issues.count === 0 ? result : undefined
  }
  return { allowed, schema, parse, read }
}

/** Parses a value. Returns `undefined` and reports every issue if it is invalid. */
export function readValue<T>(kind: Kind<T>, value: unknown, path: string, issues: ValidationIssues): T | undefined {
  if (kind.read !== undefined) return kind.read(value, path, issues)
  const result = kind.parse(value)
  if (result === undefined) issues.add(path, invalidValue(kind, value))
  return result
}

/** Adds a description for readers of the JSON Schema or the OpenAPI document. */
export const described = <T>(kind: Kind<T>, description: string): Kind<T> => withSchema(kind, { description })

export const withSchema = <T>(kind: Kind<T>, schema: JsonSchema): Kind<T> => ({
  ...kind,
  schema: { ...kind.schema, ...schema },
})

export const secret = <T>(kind: Kind<T>): Kind<T> => ({ ...kind, isSecret: true })

/** The message for an invalid value: `must be true or false; received 7`. */
export const wrongValue = (value: unknown, allowed: string): string =>
  `must be ${allowed}; received ${describeValue(value)}`

/** The message for an invalid value that may contain a password. */
export const hiddenValue = (allowed: string): string => `must be ${allowed}; the received value is hidden`

function invalidValue(kind: Kind<unknown>, value: unknown): string {
  if (kind.isSecret && value !== undefined && value !== null) return hiddenValue(kind.allowed)
  const message = wrongValue(value, kind.allowed)
  if (typeof value !== 'string' || !/^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?|true|false)$/.test(value)) return message
  return kind.parse(JSON.parse(value)) === undefined ? message : `${message}. Remove the quotes`
}
