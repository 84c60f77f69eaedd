import type { ValidationIssues } from './issues.js'
import type { SettingKind } from './setting-kinds.js'

export interface Setting<T> {
  readonly kind: SettingKind<T>
  /** The default, in the notation of the file; undefined for an optional setting without a default. */
  readonly standard: string | number | boolean | undefined
  /** The value may be a password, so messages must not show it. */
  readonly isSecret?: true
  /** An alias of the environment variable that is derived from the path. */
  readonly variable?: string
  /** Reads a structured value and reports issues by their own paths. `kind` then only describes the value. */
  readonly read?: (value: unknown, path: string, issues: ValidationIssues) => T | undefined
}

export const setting = <T>(kind: SettingKind<T>, standard: string | number | boolean): Setting<T> => ({
  kind,
  standard,
})
export const optional = <T>(kind: SettingKind<T>): Setting<T | undefined> => ({ kind, standard: undefined })
export const secret = <T>(kind: SettingKind<T>): Setting<T | undefined> => ({ ...optional(kind), isSecret: true })
