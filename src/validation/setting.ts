import type { Mistakes } from './issues.js'
import type { SettingKind } from './setting-kinds.js'

export interface Setting<T> {
  readonly kind: SettingKind<T>
  /** As it would be written in the file; `undefined` if there is none. */
  readonly standard: string | number | boolean | undefined
  /** It may hold a password, so that no message shows what was found. */
  readonly isSecret?: true
  /** A variable that means the same as the one that the place gives. */
  readonly variable?: string
  /** For a value with places of its own; reports their mistakes, and `kind` only describes it. */
  readonly read?: (value: unknown, path: string, mistakes: Mistakes) => T | undefined
}

export const setting = <T>(kind: SettingKind<T>, standard: string | number | boolean): Setting<T> => ({
  kind,
  standard,
})
export const optional = <T>(kind: SettingKind<T>): Setting<T | undefined> => ({ kind, standard: undefined })
export const secret = <T>(kind: SettingKind<T>): Setting<T | undefined> => ({ ...optional(kind), isSecret: true })
