import { type Kind, secret } from './kind.js'

/** A setting of fluxgate.yaml. */
export interface Setting<T> {
  readonly kind: Kind<T>
  /** In the notation of the file; undefined for an optional setting without a default. */
  readonly defaultValue: string | number | boolean | undefined
  /** An alias of the environment variable that is derived from the path. */
  readonly variable?: string
}

export const setting = <T>(kind: Kind<T>, defaultValue: string | number | boolean): Setting<T> => ({
  kind,
  defaultValue,
})
export const optional = <T>(kind: Kind<T>): Setting<T | undefined> => ({ kind, defaultValue: undefined })
export const optionalSecret = <T>(kind: Kind<T>): Setting<T | undefined> => optional(secret(kind))
