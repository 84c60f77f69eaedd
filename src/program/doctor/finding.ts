import type { Config } from '../../config/config.js'

export interface Finding {
  /** Name of the check, such as `redis.version`. */
  readonly name: string
  /** `warn` marks a working setup that is probably not intended. */
  readonly status: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** How to fix it. */
  readonly advice?: string
}

export type Part = 'server' | 'gateway'
export type Check = (config: Config, parts: readonly Part[]) => Promise<readonly Finding[]>

export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

export const ok = (name: string, message: string): Finding => ({ name, status: 'ok', message })
export const warn = (name: string, message: string, advice: string): Finding => ({
  name,
  status: 'warn',
  message,
  advice,
})
export const fail = (name: string, message: string, advice: string): Finding => ({
  name,
  status: 'fail',
  message,
  advice,
})
